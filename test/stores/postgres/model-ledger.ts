import type { CoupledOutcome } from '../../../src/idempotency/coupled/coupled-store.js'
import { recordIds } from '../../../src/stores/postgres/sql/record-ids.js'
import type { ModelDatabase, ModelRow } from './model-database.js'
import type { Call, Plan } from './model-story.js'

/** One start of a handler. */
export interface Start {
  readonly number: number
  readonly call: Call
  readonly plan: Plan
  readonly fence: number
  /** The process that it runs in. */
  readonly home: object
  /** What it has written before its answer. */
  readonly written: string[]
  /** The token that it has used up. */
  token: string | undefined
}

export interface Answer {
  readonly call: Call
  readonly outcome: CoupledOutcome
  /** `undefined` where no handler was started for it. */
  readonly start: Start | undefined
}

interface Kept {
  readonly number: number
  readonly body: string
}

export const SEEDED_FENCE = 'seeded'

export const resultOf = (kept: Kept): Uint8Array => Buffer.from(JSON.stringify(kept))
const kept = (result: Uint8Array): Kept => JSON.parse(Buffer.from(result).toString())

const recordIdOf = ({ key, body }: Pick<Call, 'key' | 'body'>): string =>
  recordIds(key, body, 'service_auth').id

/** Sees what happens, and what it breaks. */
export class ModelLedger {
  readonly broken: string[] = []
  readonly starts: Start[] = []
  /** Locks have gone while their transaction went on. */
  hasLostLocks = false
  /** Tokens that a crash, or a database unreachable, may free. */
  readonly excusedTokens = new Set<string>()
  readonly #database: ModelDatabase
  readonly #sent = new Map<string, Set<string>>()
  /** Starts of which a caller was told that nothing of them will ever be there. */
  readonly #denied = new Set<Start>()

  constructor(database: ModelDatabase) {
    this.#database = database
  }

  #breaks(rule: string, what: unknown): void {
    const text = JSON.stringify(what, (name, value) => (name === 'home' ? undefined : value))
    this.broken.push(`${rule}: ${text}`)
  }

  sent({ key, body }: Call): void {
    const bodies = this.#sent.get(key) ?? new Set()
    this.#sent.set(key, bodies.add(body))
  }

  started(start: Start): void {
    this.starts.push(start)
    const row = this.#record(start.call)
    const isOfARun = row !== undefined && this.#isWithWrites(row)
    if (isOfARun && !this.hasLostLocks) this.#breaks('a handler began beside a record', row)
  }

  #record(call: Call): ModelRow | undefined {
    return this.#database.rows.get(`record ${recordIdOf(call)}`)
  }

  #isWithWrites({ writtenBy }: ModelRow): boolean {
    return (
      writtenBy === SEEDED_FENCE || this.starts.some(({ fence }) => String(fence) === writtenBy)
    )
  }

  /** An answer arrives. */
  answered({ call, outcome, start }: Answer): void {
    switch (outcome.outcome) {
      case 'committed':
        if (start && !this.#isThere(start)) this.#breaks('told of a success too early', start)
        return
      case 'refusal_kept':
        if (this.#record(call) === undefined) this.#breaks('a refusal was not kept', call)
        break
      case 'finished':
        this.#replayed(call, outcome.result)
        return
      case 'mismatch':
        this.#mismatched(call)
        return
      case 'overtaken': {
        const { by } = outcome
        if (by.outcome === 'finished') this.#replayed(call, by.result)
        if (by.outcome === 'mismatch') this.#mismatched(call)
        break
      }
      case 'undone':
        if (outcome.reason === 'commit_unknown' || this.hasLostLocks) return
        break
      case 'commit_refused':
        if (start?.plan.ending !== 'swallow an error') this.#breaks('a COMMIT was refused', start)
        break
      default:
    }
    if (start !== undefined) this.#denied.add(start)
  }

  #isThere(start: Start): boolean {
    const fence = this.#record(start.call)?.writtenBy
    const owner = this.starts.find((one) => String(one.fence) === fence)
    if (owner !== start) return false
    return owner.written.every((id) => this.#database.rows.has(`effect ${id}`))
  }

  #replayed(call: Call, result: Uint8Array): void {
    const { body } = kept(result)
    if (body !== call.body) this.#breaks("replayed another body's answer", { call, body })
  }

  #mismatched(call: Call): void {
    if (this.#sent.get(call.key)?.size === 1) this.#breaks('422 for an equal request', call)
  }

  /** Everything is over. */
  settled(): void {
    const effects = new Set(this.#database.inTable('effect').map(({ id }) => id))
    for (const key of new Set(this.starts.map(({ call }) => call.key))) {
      const ofKey = this.starts.filter(
        (start) => start.call.key === key && [...effects].some((id) => isOf(start, id)),
      )
      if (ofKey.length > 1) this.#breaks('more than one effect', ofKey)
    }
    for (const start of this.starts) this.#settle(start, effects)
    for (const id of effects) {
      if (!this.starts.some(({ written }) => written.includes(id)))
        this.#breaks('a late write has landed', id)
    }
  }

  #settle(start: Start, effects: ReadonlySet<string>): void {
    const { written, call, token } = start
    const there = written.filter((id) => effects.has(id))
    const isRecorded = this.#record(call)?.writtenBy === String(start.fence)
    if (there.length > 0 && !isRecorded) this.#breaks('a write without its record', start)
    if (isRecorded && there.length < written.length) this.#breaks('a record without a write', start)
    if (there.length > 0 && this.#denied.has(start)) this.#breaks('a denied write is there', start)
    const isFree = token !== undefined && !this.#database.rows.has(`token ${token}`)
    if (isFree && !this.excusedTokens.has(token)) this.#breaks('a used token is free', start)
  }

  static isFinal(outcome: CoupledOutcome['outcome']): boolean {
    return ['committed', 'finished', 'mismatch', 'result_not_stored'].includes(outcome)
  }

  /** What a last retry was answered with. */
  final(call: Call, outcome: CoupledOutcome['outcome']): void {
    if (!ModelLedger.isFinal(outcome)) this.#breaks('no final answer', { call, outcome })
  }
}

const isOf = ({ number }: Start, effect: string): boolean => effect.split('/')[1] === String(number)

export const effectOf = (number: number, key: string, part: string): string =>
  `${key}/${number}/${part}`
