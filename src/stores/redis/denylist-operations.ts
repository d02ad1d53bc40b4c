import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { integerBetween, optionsObject, parseOptions } from '../../base/options.js'
import { ServiceAuthError } from '../../decision/fault.js'
import { checkEntry, checkTarget } from '../../denylist/check-entry.js'
import type { DenylistEntry, DenylistTarget } from '../../denylist/entry.js'
import { DenylistUnconfirmed } from '../../denylist/unconfirmed.js'
import { type DenylistConnection, type Question, Unanswered } from './denylist-connection.js'
import * as rows from './denylist-rows.js'
import * as scripts from './denylist-scripts.js'
import { heldOpen } from './held-open.js'

/** What operators do with a live denylist. */
export interface DenylistOperations {
  /**
   * Denies. Denied twice, the later end and the later cut-off count. Resolves with the version that
   * has the entry and with the entry as it is now in force.
   *
   * @throws TypeError when the entry is not valid, has ended, or would be the 10,001st; nothing was
   * written.
   * @throws DenylistUnconfirmed
   */
  deny(entry: DenylistEntry, options?: DenylistCallOptions): Promise<DenyResult>
  /**
   * Ends an entry, in the list and wherever it is still held. Resolves with the version that has that,
   * and whether the list had the entry.
   *
   * @throws TypeError when the target is not valid, or when 10,000 others were allowed within the last 7
   * days; nothing was written.
   * @throws DenylistUnconfirmed
   */
  allow(target: DenylistTarget, options?: DenylistCallOptions): Promise<AllowResult>
  /** What is denied at present. @throws ServiceAuthError `unavailable` */
  entries(options?: DenylistCallOptions): Promise<readonly DenylistEntry[]>
  /**
   * Who receives the list; who has died, until it was silent for its `maxStaleSeconds`.
   *
   * @throws ServiceAuthError `unavailable`
   */
  receivers(options?: DenylistCallOptions): Promise<readonly DenylistReceiver[]>
  /** The version of the list, and the time of its server. @throws ServiceAuthError `unavailable` */
  version(options?: DenylistCallOptions): Promise<DenylistVersion>
}

/** Options of a call of the denylist. */
export interface DenylistCallOptions {
  /** Milliseconds, 1 to 60,000, until which it is asked again and again. Default: 1000. */
  readonly timeoutMs?: number | undefined
}

/** What `deny` has written. */
export interface DenyResult {
  /** The version that has the entry. */
  readonly version: number
  /** The entry as it is in force. */
  readonly entry: DenylistEntry
}

/** What `allow` has written. */
export interface AllowResult {
  /** The version that no longer has it. */
  readonly version: number
  /** Whether the list had the entry. */
  readonly wasListed: boolean
}

/** A receiver that reports which version it applies. */
export interface DenylistReceiver {
  /** Its `name`. */
  readonly name: string
  /** The version that it applies. */
  readonly version: number
  /** Seconds since it last said which version it applies. */
  readonly seenSecondsAgo: number
}

/** A version of the list, at a moment of its server. */
export interface DenylistVersion {
  /** Grows with each change. */
  readonly version: number
  /** Seconds since the epoch, by the server's clock. */
  readonly serverSeconds: number
}

const MAX_ENTRIES = 10_000
/** Receivers read all marks with the entries: without a bound they could not read the list in time. */
const MAX_MARKS = 10_000
/** The largest `maxStaleSeconds`: no receiver holds an entry for longer without the list. */
const MARK_SECONDS = 604_800
/** A connection that says nothing is replaced after this, and the question asked again. */
const TRY_TIMEOUT_MS = 500
const RETRY_DELAY_MS = 50
/** A try without the time for an answer would only blur what is known. */
const LEAST_TRY_MS = 100
/** Answers of a server that may take the question a moment later. */
const PASSING = /\b(LOADING|BUSY|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

const schema = optionsObject({ timeoutMs: integerBetween(1, 60_000).default(1000) })

export function createOperations(connection: DenylistConnection): DenylistOperations {
  /**
   * The question has no further effect the second time.
   *
   * @throws Unanswered with what became of all tries.
   */
  async function ask(question: Omit<Question, 'timeoutMs'>, options: unknown): Promise<unknown> {
    const { timeoutMs } = parseOptions('denylist options', schema, options)
    return await heldOpen(() => persist(question, timeoutMs))
  }

  async function persist(
    question: Omit<Question, 'timeoutMs'>,
    timeoutMs: number,
  ): Promise<unknown> {
    const deadline = performance.now() + timeoutMs
    let leftMs = timeoutMs
    let mayHaveRun = false
    for (;;) {
      try {
        return await connection.ask({ ...question, timeoutMs: Math.min(TRY_TIMEOUT_MS, leftMs) })
      } catch (error) {
        const { code, message, mayHaveRun: mayHaveRunNow } = error as Unanswered
        mayHaveRun ||= mayHaveRunNow
        const isOver = performance.now() + RETRY_DELAY_MS + LEAST_TRY_MS >= deadline
        const isFinal = code === 'closed' || (code === 'server' && !PASSING.test(message))
        if (isOver || isFinal) throw new Unanswered(code, message, mayHaveRun)
      }
      await sleep(RETRY_DELAY_MS)
      leftMs = Math.max(LEAST_TRY_MS, deadline - performance.now())
    }
  }

  async function write<T>(
    question: Omit<Question, 'timeoutMs'>,
    options: unknown,
    parse: (answer: readonly unknown[]) => T,
  ): Promise<T> {
    try {
      const [outcome, ...answer] = rows.rowsOf(await ask(question, options))
      if (outcome === 'written') return parse(answer)
      const refusal = REFUSALS.get(outcome)
      throw refusal === undefined ? new DenylistUnconfirmed(DAMAGED, false) : new TypeError(refusal)
    } catch (error) {
      if (error instanceof rows.Malformed) throw new DenylistUnconfirmed(DAMAGED, true)
      throw error instanceof Unanswered
        ? new DenylistUnconfirmed(error.message, error.mayHaveRun)
        : error
    }
  }

  async function read<T>(
    script: Question['script'],
    options: unknown,
    parse: (reply: unknown) => T,
  ): Promise<T> {
    try {
      return parse(await ask({ script }, options))
    } catch (error) {
      if (error instanceof rows.Malformed) throw unreadable(DAMAGED)
      throw error instanceof Unanswered ? unreadable(error.message) : error
    }
  }

  return {
    async deny(input, options = {}) {
      const entry = checkEntry(input)
      const text = rows.targetText(rows.targetOf(entry))
      const limits = rows.limitTexts(entry)
      const reason = rows.reasonText(entry)
      const args = [randomUUID(), text, ...limits, reason, String(MAX_ENTRIES)]
      return await write({ script: scripts.DENY, args }, options, ([number, ends, cutoff]) => {
        const { endsAt, issuedBefore } = rows.readLimits(ends, cutoff)
        const until = endsAt === Number.POSITIVE_INFINITY ? null : endsAt
        const value = entry.kind === 'issued-before' ? issuedBefore : entry.value
        return { version: rows.readNumber(number), entry: { ...entry, value, until } }
      })
    },
    async allow(input, options = {}) {
      const target = checkTarget(input)
      const args = [randomUUID(), rows.targetText(target), String(MARK_SECONDS), String(MAX_MARKS)]
      return await write({ script: scripts.ALLOW, args }, options, ([number, listed]) => ({
        version: rows.readNumber(number),
        wasListed: listed === '1',
      }))
    },
    entries: (options = {}) => read(scripts.READ_WITH_REASONS, options, rows.readRecords),
    receivers: (options = {}) =>
      read(scripts.RECEIVERS, options, (reply) => rows.rowsOf(reply).map(receiverOf)),
    version: (options = {}) =>
      read(scripts.POLL, options, (reply) => {
        const { version, serverSeconds } = rows.readPoll(reply)
        return { version: version.number, serverSeconds }
      }),
  }
}

const DAMAGED = 'what its keys in Redis hold is damaged, or of another version'

/** By what the scripts answer. */
const REFUSALS: ReadonlyMap<unknown, string> = new Map([
  ['ended', 'denylist entry: until must be later than now'],
  ['full', `denylist entry: the list is full, it has ${MAX_ENTRIES} entries`],
  ['marks_full', `denylist target: ${MAX_MARKS} others were allowed within the last 7 days`],
])

const unreadable = (fault: string): ServiceAuthError =>
  new ServiceAuthError('unavailable', `the denylist cannot be read: ${fault}`)

function receiverOf(row: unknown): DenylistReceiver {
  const [name, version, silentMs] = rows.rowsOf(row)
  return {
    name: String(name),
    version: rows.readNumber(version),
    seenSecondsAgo: rows.readNumber(silentMs) / 1000,
  }
}
