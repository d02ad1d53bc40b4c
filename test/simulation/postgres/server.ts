import type { Machine } from '../clock.js'
import type { Connection, End, StoreServer } from '../network.js'
import { commit, Database, end, execute, Session, type Wait } from './database.js'
import {
  authenticated,
  type Batch,
  failure,
  PgError,
  type Request,
  RequestReader,
  type Result,
  ready,
  resultOf,
  type Statement,
} from './protocol.js'

/** Longer than every story. */
const NEVER_MS = 1e9

interface DatabaseOptions {
  /** The SQL of `migration()`. */
  readonly migration: string
  /** How long a step of a statement takes, at most, in ms. */
  readonly stepMs: number
}

/** A database, and who talks to it. */
export class PostgresServer extends Database implements StoreServer {
  isListening = true
  onCommand: (count: number) => void = () => {}
  readonly #stepMs: number
  #commands = 0

  constructor(machine: Machine, { migration, stepMs }: DatabaseOptions) {
    super(machine, migration)
    this.#stepMs = stepMs
  }

  accept(connection: Connection): End {
    return new Backend(this, connection)
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

  get #inTransaction(): readonly Session[] {
    return [...this.sessions].filter(({ transaction }) => transaction !== undefined)
  }

  /**
   * How many transactions no limit of the server will end. One that has only begun holds no more than an idle
   * connection does: no lock, no row, no snapshot.
   */
  get endlessTransactions(): number {
    return this.#inTransaction.filter(
      ({ limits, locks, inserted, snapshot }) =>
        limits['idle_in_transaction_session_timeout'] === undefined &&
        (locks.size > 0 || inserted.size > 0 || snapshot !== undefined),
    ).length
  }

  /** An operator ends a backend, if there is one in a transaction. */
  endBackend(which: number): void {
    const open = this.#inTransaction
    open[which % Math.max(1, open.length)]?.die(new PgError('57P01'))
  }

  /** Most are short; in a long one much else may happen. */
  stepTime(): number {
    return this.machine.simulation.random.next() ** 4 * this.#stepMs
  }

  ran(): void {
    this.onCommand(++this.#commands)
  }
}

/** The server's side of a connection. A statement is a generator, and whenever it yields, others may come between. */
class Backend extends Session implements End {
  readonly machine: Machine
  readonly #server: PostgresServer
  readonly #connection: Connection
  readonly #reader = new RequestReader()
  readonly #inbox: Request[] = []
  #isBusy = false
  #isDead = false
  #stopIdling = (): void => {}

  constructor(server: PostgresServer, connection: Connection) {
    super(server)
    this.machine = server.machine
    this.#server = server
    this.#connection = connection
  }

  onData(data: unknown): void {
    this.#inbox.push(...this.#reader.read(data as Buffer))
    this.#next()
  }

  /** What the client has sent before is still done. */
  onClose(): void {
    this.#inbox.push('terminate')
    this.#next()
  }

  #send(...replies: readonly Buffer[]): void {
    this.#connection.send('server', Buffer.concat(replies))
  }

  #next(): void {
    if (this.#isBusy || this.#isDead) return
    const request = this.#inbox.shift()
    if (request === undefined) return
    this.#stopIdling()
    if (request === 'terminate') this.die()
    else if (request === 'startup') {
      this.#send(authenticated(), ready('I'))
      this.#next()
    } else {
      this.#isBusy = true
      const performing = this.#perform(request)
      this.#advance(performing, () => performing.next())
    }
  }

  #advance(performing: Generator<Wait, void>, resume: () => IteratorResult<Wait, void>): void {
    if (this.#isDead) return
    const { done, value: isFree } = resume()
    if (done) {
      this.#isBusy = false
      this.#idle()
      this.#next()
      return
    }
    const go = (): void =>
      void this.machine.after(this.#server.stepTime(), () =>
        this.#advance(performing, () => performing.next()),
      )
    if (isFree === undefined || isFree()) {
      go()
      return
    }
    const { lock_timeout: lockMs = Infinity, statement_timeout: statementMs = Infinity } =
      this.limits
    const cancel = this.machine.after(Math.min(lockMs, statementMs, NEVER_MS), () => {
      this.look = undefined
      const error = new PgError(lockMs <= statementMs ? '55P03' : '57014')
      this.#advance(performing, () => performing.throw(error))
    })
    this.look = () => {
      if (!isFree()) return
      this.look = undefined
      cancel()
      go()
    }
  }

  *#perform({ statements, isExtended }: Batch): Generator<Wait, void> {
    const replies: Buffer[] = []
    yield undefined
    try {
      for (const statement of statements) {
        const result = yield* this.#one(statement)
        replies.push(resultOf(result, { isExtended }))
        this.#server.ran()
        yield undefined
      }
      if (this.isImplicit) yield* commit(this)
    } catch (error) {
      if (!(error instanceof PgError)) throw error
      replies.push(failure(error))
      if (this.isImplicit) yield* end(this)
      else this.hasFailed = true
    }
    const status = this.transaction === undefined ? 'I' : this.hasFailed ? 'E' : 'T'
    this.#send(...replies, ready(status))
  }

  *#one(statement: Statement): Generator<Wait, Result> {
    const endsTransaction = /^(?:commit|rollback)$/.test(statement.text)
    if (this.hasFailed && !endsTransaction) throw new PgError('25P02')
    if (this.transaction === undefined) {
      this.transaction = this.database.nextTransaction()
      this.isImplicit = true
    }
    if (statement.text.startsWith('begin')) {
      this.isImplicit = false
      this.isRepeatable = statement.text.endsWith('repeatable read')
    } else if (this.isRepeatable) this.snapshot ??= new Map(this.database.rows)
    return yield* execute(this, statement)
  }

  #idle(): void {
    const { idle_in_transaction_session_timeout: ms } = this.limits
    if (this.transaction === undefined || ms === undefined) return
    this.#stopIdling = this.machine.after(ms, () => this.die(new PgError('25P03')))
  }

  die(error?: PgError): void {
    if (this.#isDead) return
    this.#isDead = true
    this.#stopIdling()
    this.ended()
    this.database.sessions.delete(this)
    for (const lock of this.locks) this.freeLock(lock)
    if (error !== undefined) this.#send(failure(error, 'FATAL'))
    this.#connection.close('server', error === undefined ? 'ECONNRESET' : undefined)
  }
}
