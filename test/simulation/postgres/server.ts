import type { Machine } from '../clock.js'
import type { Connection, End, StoreServer } from '../network.js'
import {
  authenticated,
  failure,
  PgError,
  type Request,
  RequestReader,
  type Result,
  ready,
  resultOf,
  type Statement,
} from './protocol.js'

/** A row of any of the tables. */
export interface Row {
  readonly table: 'idempotency' | 'used_token' | 'effect'
  readonly id: string
  readonly fingerprint?: string
  /** As Base64. */
  readonly result?: string | undefined
  readonly usedToken?: boolean
  /** By the server's clock, in ms. */
  readonly insertedAt: number
  readonly expiresAt?: number
  /** The transaction that has written it. */
  readonly transaction: number
}

/** What the server has done, for the oracle. */
type Step =
  | {
      /** A run has the lock of its key, and has found no record. */
      readonly type: 'begin'
      readonly transaction: number
      readonly id: string
      /** It sees what was there before it had the lock. */
      readonly hasOldSnapshot: boolean
    }
  | { readonly type: 'commit'; readonly transaction: number; readonly rows: readonly Row[] }
  /** It has committed or not; its locks go after this. */
  | { readonly type: 'end'; readonly transaction: number }
  | { readonly type: 'delete'; readonly row: Row; readonly now: number }

/** `at` is real, in ms. */
export type DatabaseStep = Step & { readonly at: number }

/** What a statement waits for; without it, only others may come between. */
export type Wait = (() => boolean) | undefined

/** What statements do; see `sql.ts`. */
interface Sql {
  execute(session: Session, statement: Statement): Generator<Wait, Result>
  commit(session: Session): Generator<Wait, Result>
  end(session: Session): Generator<Wait, void>
  functionBody(migration: string): readonly string[]
}

export interface DatabaseOptions {
  readonly migration: string
  /** How long a step of a statement takes, at most, in ms. */
  readonly stepMs: number
}

/** A Postgres server: what is committed, who holds which lock, and who talks to it. */
export class PostgresServer implements StoreServer {
  readonly machine: Machine
  isListening = true
  onCommand: (count: number) => void = () => {}
  onStep: (step: DatabaseStep) => void = () => {}
  readonly rows = new Map<string, Row>()
  readonly locks = new Map<string, Session>()
  readonly committed = new Set<number>()
  readonly sessions = new Set<Session>()
  /** The statements of the function `begin_run`. */
  readonly beginRun: readonly string[]
  readonly sql: Sql
  readonly #stepMs: number
  #transactions = 700
  #commands = 0

  constructor(machine: Machine, sql: Sql, { migration, stepMs }: DatabaseOptions) {
    this.machine = machine
    this.sql = sql
    this.beginRun = sql.functionBody(migration)
    this.#stepMs = stepMs
  }

  accept(connection: Connection): End {
    const session = new Session(this, connection)
    this.sessions.add(session)
    return {
      machine: this.machine,
      onData: (data) => session.receive(data as Buffer),
      onClose: () => session.hangUp(),
    }
  }

  /** Everything that is not committed goes. */
  restart(downMs: number): void {
    this.isListening = false
    for (const session of this.sessions) session.die()
    this.machine.after(downMs, () => {
      this.isListening = true
    })
  }

  calm(): void {}

  /** The transactions that no limit of the server will end. */
  get openTransactions(): number {
    const isOpen = ({ transaction, limits }: Session): boolean =>
      transaction !== undefined && limits['idle_in_transaction_session_timeout'] === undefined
    return [...this.sessions].filter(isOpen).length
  }

  /** An operator ends a backend, if there is one in a transaction. */
  endBackend(which: number): void {
    const open = [...this.sessions].filter(({ transaction }) => transaction !== undefined)
    open[which % Math.max(1, open.length)]?.die(new PgError('57P01'))
  }

  step(step: Step): void {
    this.onStep({ at: this.machine.simulation.now, ...step })
  }

  nextTransaction(): number {
    return ++this.#transactions
  }

  /** Most are short; in a long one much else may happen. */
  stepTime(): number {
    return this.machine.simulation.random.next() ** 4 * this.#stepMs
  }

  ran(): void {
    this.onCommand(++this.#commands)
  }

  /** Whoever waits looks again. */
  changed(): void {
    for (const session of this.sessions) session.wake()
  }
}

/** One backend. A statement is a generator, and whenever it yields, others may come between. */
export class Session {
  readonly server: PostgresServer
  /** What it has written, and not committed. */
  readonly inserted = new Map<string, Row>()
  readonly locks = new Set<string>()
  transaction: number | undefined
  isRepeatable = false
  /** What a repeatable read sees. */
  snapshot: ReadonlyMap<string, Row> | undefined
  /** Limits of the transaction, in ms. */
  limits: Record<string, number> = {}
  readonly #connection: Connection
  readonly #reader = new RequestReader()
  readonly #inbox: (Request | { readonly type: 'hang up' })[] = []
  #hasFailed = false
  #isImplicit = false
  #isBusy = false
  #isDead = false
  #waiting: (() => void) | undefined
  #stopIdling = (): void => {}

  constructor(server: PostgresServer, connection: Connection) {
    this.server = server
    this.#connection = connection
  }

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  receive(data: Buffer): void {
    this.#inbox.push(...this.#reader.read(data))
    this.#next()
  }

  /** What the client has sent before is still done. */
  hangUp(): void {
    this.#inbox.push({ type: 'hang up' })
    this.#next()
  }

  wake(): void {
    this.#waiting?.()
  }

  #send(...replies: readonly Buffer[]): void {
    this.#connection.send('server', Buffer.concat(replies))
  }

  #next(): void {
    if (this.#isBusy || this.#isDead) return
    const request = this.#inbox.shift()
    if (request === undefined) return
    this.#stopIdling()
    if (request.type === 'startup') this.#send(authenticated(), ready('I'))
    else if (request.type !== 'statements') {
      this.die()
      return
    } else {
      this.#isBusy = true
      const performing = this.#perform(request)
      this.#advance(performing, () => performing.next())
      return
    }
    this.#next()
  }

  #advance(performing: Generator<Wait, void>, resume: () => IteratorResult<Wait, void>): void {
    if (this.#isDead) return
    const { done, value } = resume()
    if (done) {
      this.#isBusy = false
      this.#idle()
      this.#next()
      return
    }
    const go = (): void => this.#advance(performing, () => performing.next())
    const { machine } = this.server
    if (value === undefined || value()) {
      machine.after(this.server.stepTime(), go)
      return
    }
    const { lock_timeout: lockMs = Infinity, statement_timeout: statementMs = Infinity } =
      this.limits
    const cancel = machine.after(Math.min(lockMs, statementMs, NEVER_MS), () => {
      this.#waiting = undefined
      const error = new PgError(lockMs <= statementMs ? '55P03' : '57014')
      this.#advance(performing, () => performing.throw(error))
    })
    this.#waiting = () => {
      if (!value()) return
      this.#waiting = undefined
      cancel()
      machine.after(this.server.stepTime(), go)
    }
  }

  *#perform({ statements, isExtended }: Request & { type: 'statements' }): Generator<Wait, void> {
    const replies: Buffer[] = []
    yield undefined
    try {
      for (const statement of statements) {
        const result = yield* this.#one(statement)
        replies.push(resultOf(result, { isExtended }))
        this.server.ran()
        yield undefined
      }
      if (this.#isImplicit) yield* this.server.sql.commit(this)
    } catch (error) {
      if (!(error instanceof PgError)) throw error
      replies.push(failure(error))
      if (this.#isImplicit) yield* this.server.sql.end(this)
      else this.#hasFailed = true
    }
    const status = this.transaction === undefined ? 'I' : this.#hasFailed ? 'E' : 'T'
    this.#send(...replies, ready(status))
  }

  *#one(statement: Statement): Generator<Wait, Result> {
    const endsTransaction = /^(?:commit|rollback)$/.test(statement.text)
    if (this.#hasFailed && !endsTransaction) throw new PgError('25P02')
    if (this.transaction === undefined) {
      this.transaction = this.server.nextTransaction()
      this.#isImplicit = true
    }
    if (statement.text.startsWith('begin')) {
      this.#isImplicit = false
      this.isRepeatable = statement.text.endsWith('repeatable read')
    } else if (this.isRepeatable) this.snapshot ??= new Map(this.server.rows)
    return yield* this.server.sql.execute(this, statement)
  }

  #idle(): void {
    const { idle_in_transaction_session_timeout: ms } = this.limits
    if (this.transaction === undefined || ms === undefined) return
    this.#stopIdling = this.server.machine.after(ms, () => this.die(new PgError('25P03')))
  }

  tryLock(lock: string): boolean {
    const { locks } = this.server
    const holder = locks.get(lock)
    if (holder !== undefined && holder !== this) return false
    locks.set(lock, this)
    this.locks.add(lock)
    return true
  }

  freeLock(lock: string): void {
    this.server.locks.delete(lock)
    this.locks.delete(lock)
    this.server.changed()
  }

  /** The transaction is over, but for its locks. */
  ended(): void {
    if (this.transaction !== undefined)
      this.server.step({ type: 'end', transaction: this.transaction })
    this.inserted.clear()
    this.#hasFailed = false
    this.#isImplicit = false
    this.isRepeatable = false
    this.snapshot = undefined
    this.transaction = undefined
    this.limits = {}
    this.server.changed()
  }

  die(error?: PgError): void {
    if (this.#isDead) return
    this.#isDead = true
    this.#stopIdling()
    this.ended()
    this.server.sessions.delete(this)
    for (const lock of this.locks) this.freeLock(lock)
    if (error !== undefined) this.#send(failure(error, 'FATAL'))
    this.#connection.close('server', error === undefined ? 'ECONNRESET' : undefined)
  }
}

/** Longer than every story. */
const NEVER_MS = 1e9
