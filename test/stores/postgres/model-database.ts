import type { Row, Statement } from '../../../src/stores/postgres/runner.js'
import type { Schedule } from './model-schedule.js'

/** A row of any of the three tables. */
export interface ModelRow {
  readonly table: 'record' | 'token' | 'effect'
  readonly id: string
  readonly fingerprint?: string
  readonly result?: Uint8Array | undefined
  readonly usedToken?: boolean
  readonly isExpired?: boolean
  /** The transaction that has written it. */
  readonly writtenBy: string
}

/** A statement as the server performs it. Whatever it yields, it waits for; then others go first. */
export type Operation = (
  session: Session,
  values: readonly unknown[],
) => Generator<(() => boolean) | undefined, readonly Row[]>

export type Operations = Readonly<Record<string, Operation>>

export class ModelError extends Error {
  readonly code: string

  constructor(code: string) {
    super(`SQLSTATE ${code}`)
    this.code = code
  }
}

export type Reply = { readonly rows: readonly (readonly Row[])[] } | { readonly error: Error }

interface Message {
  readonly statements: readonly Statement[]
  answer(reply: Reply): void
}

const IDLE_IN_TRANSACTION = '25P03'
const FAILED_TRANSACTION = '25P02'
/** The longest that a server stands still between two locks that it frees. */
const STANDSTILL_MS = 100

/** A server: what is committed, who holds which lock, and who talks to it. */
export class ModelDatabase {
  readonly rows = new Map<string, ModelRow>()
  readonly locks = new Map<string, Session>()
  /** The ids of the transactions that have committed. */
  readonly committed = new Set<string>()
  readonly sessions = new Set<Session>()
  readonly operations: Operations
  readonly schedule: Schedule
  isUp = true
  /** How many transactions still free their locks one after the other. */
  splitReleases: number
  /** What was written is seen when it commits. */
  onCommit: (rows: readonly ModelRow[]) => void = () => {}
  #transactions = 0

  constructor(schedule: Schedule, operations: Operations, splitReleases: number) {
    this.schedule = schedule
    this.operations = operations
    this.splitReleases = splitReleases
  }

  nextTransaction(): number {
    this.#transactions += 1
    return this.#transactions
  }

  inTable(table: ModelRow['table']): ModelRow[] {
    return [...this.rows.values()].filter((row) => row.table === table)
  }

  connect(): Session {
    const session = new Session(this)
    this.sessions.add(session)
    return session
  }
}

/** One backend. A statement is a generator, and whatever it yields others may come between. */
export class Session {
  readonly database: ModelDatabase
  readonly inserted = new Map<string, ModelRow>()
  readonly held = new Set<string>()
  transaction: number | undefined
  hasFailed = false
  isDead = false
  idleMs = 0
  /** What one statement leaves to the next, in some mutants. */
  memory: unknown
  onDeath: (error: Error) => void = () => {}
  readonly #inbox: (Message | 'eof')[] = []
  #isBusy = false
  #idle: NodeJS.Timeout | undefined

  constructor(database: ModelDatabase) {
    this.database = database
  }

  get name(): string {
    return String(this.transaction)
  }

  receive(message: Message | 'eof'): void {
    if (this.isDead) return
    this.#inbox.push(message)
    this.#read()
  }

  #read(): void {
    if (this.#isBusy || this.isDead) return
    const message = this.#inbox.shift()
    clearTimeout(this.#idle)
    if (message === undefined) {
      this.#startIdling()
    } else if (message === 'eof') {
      this.die(new Error('gone'))
    } else {
      this.#isBusy = true
      this.#work(message, this.#perform(message))
    }
  }

  #startIdling(): void {
    if (this.transaction === undefined || this.idleMs === 0) return
    this.#idle = setTimeout(() => this.die(new ModelError(IDLE_IN_TRANSACTION)), this.idleMs)
  }

  #work(message: Message, performing: Generator<(() => boolean) | undefined, Reply>): void {
    const { schedule } = this.database
    const label = `server: ${message.statements.map(({ text }) => text).join(', ')}`
    const go = (isReady?: () => boolean): void =>
      schedule.later(label, next, () => this.isDead || isReady === undefined || isReady())
    const next = (): void => {
      if (this.isDead) return
      const { done, value } = performing.next()
      if (this.isDead) return
      if (done !== true) {
        go(value)
        return
      }
      this.#isBusy = false
      message.answer(value)
      this.#read()
    }
    go()
  }

  *#perform({ statements }: Message): Generator<(() => boolean) | undefined, Reply> {
    const isAlone = this.transaction === undefined && statements[0]?.text !== 'begin'
    const rows: (readonly Row[])[] = []
    try {
      if (isAlone) yield* this.#one({ text: 'begin', values: [] })
      for (const statement of statements) {
        rows.push(yield* this.#one(statement))
        yield undefined
      }
      if (isAlone) yield* this.#one({ text: 'commit', values: [] })
      return { rows }
    } catch (error) {
      this.hasFailed = true
      if (isAlone) yield* this.end()
      return { error: error as Error }
    }
  }

  *#one({ text, values }: Statement): Generator<(() => boolean) | undefined, readonly Row[]> {
    const endsTransaction = text === 'commit' || text === 'rollback'
    if (this.hasFailed && !endsTransaction) throw new ModelError(FAILED_TRANSACTION)
    const operation = this.database.operations[text]
    if (operation === undefined) throw new TypeError(`no operation ${text}`)
    return yield* operation(this, values)
  }

  tryLock(lock: string): boolean {
    const { locks } = this.database
    const holder = locks.get(lock)
    if (holder !== undefined && holder !== this) return false
    locks.set(lock, this)
    this.held.add(lock)
    return true
  }

  freeLock(lock: string): void {
    const { locks } = this.database
    if (locks.get(lock) === this) locks.delete(lock)
    this.held.delete(lock)
  }

  /** Ends the transaction: its rows have been committed, or go; its locks go after them. */
  *end(): Generator<undefined, void> {
    this.inserted.clear()
    this.hasFailed = false
    this.transaction = undefined
    for (const lock of [...this.held]) {
      this.freeLock(lock)
      if (this.held.size === 0 || this.database.splitReleases === 0) continue
      this.database.splitReleases -= 1
      const standstill = setTimeout(() => this.freeLocks(), STANDSTILL_MS)
      yield undefined
      clearTimeout(standstill)
    }
  }

  freeLocks(): void {
    for (const lock of [...this.held]) this.freeLock(lock)
  }

  die(error: Error): void {
    if (this.isDead) return
    this.isDead = true
    clearTimeout(this.#idle)
    this.inserted.clear()
    this.freeLocks()
    this.database.sessions.delete(this)
    this.onDeath(error)
  }
}
