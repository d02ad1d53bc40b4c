import { withDeadline } from '../../../src/base/deadline.js'
import type { Row, Statement, TransactionRunner } from '../../../src/stores/postgres/runner.js'
import { awaitAnswer } from '../../../src/stores/postgres/time-limits.js'
import type { ModelDatabase, Reply, Session } from './model-database.js'

const ROLLBACK_MS = 1000
const DEFAULT_LIMITS = { acquireMs: 1000, statementMs: 3000 }

const NEVER = new Promise<never>(() => {})

interface Pending {
  resolve(rows: readonly (readonly Row[])[]): void
  reject(error: Error): void
}

/** A connection of a client's pool, and the network below it. It is the `tx` of the runner. */
export class Connection {
  readonly session: Session
  readonly #database: ModelDatabase
  readonly #toServer: (() => void)[] = []
  readonly #toClient: (() => void)[] = []
  readonly #pending: Pending[] = []
  #isBegun = false
  #transactionMs = 0
  #committing: Promise<void> | undefined
  /** Nothing passes any more, and nobody notices. */
  isSilent = false
  isBroken = false
  isCommitting = false

  constructor(database: ModelDatabase) {
    this.#database = database
    this.session = database.connect()
    this.session.onDeath = (error) => this.#fromServer('connection lost', () => this.#fail(error))
  }

  /** A transaction begins with the first statements that are sent. */
  begin(transactionMs: number): void {
    this.#transactionMs = transactionMs
    this.#isBegun = false
    this.#committing = undefined
  }

  /** What handlers call. */
  async query(statement: Statement): Promise<readonly Row[]> {
    const [rows] = await this.send([statement])
    return rows ?? []
  }

  async send(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    if (this.#isBegun) return this.exchange(statements)
    this.#isBegun = true
    const rows = await this.exchange([{ text: 'begin', values: [] }, ...statements])
    return rows.slice(1)
  }

  commit(statements: readonly Statement[] = []): Promise<void> {
    this.#committing ??= this.#commit([...statements, { text: 'commit', values: [] }])
    return this.#committing
  }

  async #commit(statements: readonly Statement[]): Promise<void> {
    this.isCommitting = true
    const sent = this.send(statements).finally(() => {
      this.isCommitting = false
    })
    const rows = await awaitAnswer(this.#transactionMs, sent)
    const command = rows.at(-1)?.[0]?.['command']
    if (command !== 'COMMIT') throw new Error(`Postgres answered ${command} to a COMMIT.`)
  }

  exchange(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    if (this.isBroken) return Promise.reject(new Error('ECONNRESET'))
    return new Promise((resolve, reject) => {
      const pending = { resolve, reject }
      this.#pending.push(pending)
      const answer = (reply: Reply): void =>
        this.#fromServer('reply', () => {
          this.#pending.splice(this.#pending.indexOf(pending), 1)
          if ('error' in reply) reject(reply.error)
          else resolve(reply.rows)
        })
      this.#send(statements[0]?.text ?? '', () => this.session.receive({ statements, answer }))
    })
  }

  #send(label: string, deliver: () => void): void {
    if (this.isSilent) return
    this.#toServer.push(deliver)
    this.#database.schedule.later(`network: ${label}`, () => this.#toServer.shift()?.())
  }

  #fromServer(label: string, arrive: () => void): void {
    this.#toClient.push(arrive)
    this.#database.schedule.later(`network: ${label}`, () => {
      const next = this.#toClient.shift()
      if (!this.isBroken && !this.isSilent) next?.()
    })
  }

  #fail(error: Error): void {
    this.isBroken = true
    for (const { reject } of this.#pending.splice(0)) reject(error)
  }

  /** The client gives the connection up, or loses it; what it has sent may still arrive. */
  cut({ dropsRequests }: { readonly dropsRequests: boolean }): void {
    if (this.isBroken) return
    if (dropsRequests) this.#toServer.splice(0)
    this.#send('end of the connection', () => this.session.receive('eof'))
    this.#fail(new Error('ECONNRESET'))
  }
}

/** The client of one process: its pool, until the process dies. */
export class ModelClient {
  readonly connections = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #database: ModelDatabase
  isAlive = true

  constructor(database: ModelDatabase) {
    this.#database = database
  }

  /** What the process has sent may still arrive; what comes for it goes nowhere. */
  kill({ dropsRequests }: { readonly dropsRequests: boolean }): void {
    this.isAlive = false
    for (const connection of this.connections) connection.cut({ dropsRequests })
  }

  async borrow(acquireMs: number): Promise<Connection> {
    const limit = {
      timeoutMs: acquireMs,
      timeoutError: () => new Error('no connection in time'),
      late: (connection: Connection) => this.giveBack(connection, true),
    }
    const connection = await withDeadline(limit, this.#connect())
    return this.isAlive ? connection : NEVER
  }

  giveBack(connection: Connection, isSound: boolean): void {
    if (!this.isAlive) return
    if (isSound && !connection.isBroken) {
      this.#idle.push(connection)
      return
    }
    this.connections.delete(connection)
    connection.cut({ dropsRequests: false })
  }

  #connect(): Promise<Connection> {
    const idle = this.#idle.shift()
    if (idle !== undefined) return Promise.resolve(idle)
    const { schedule } = this.#database
    return new Promise((resolve, reject) => {
      schedule.later('network: connect', () => {
        if (!this.isAlive) return
        if (!this.#database.isUp) return reject(new Error('ECONNREFUSED'))
        const connection = new Connection(this.#database)
        this.connections.add(connection)
        resolve(connection)
      })
    })
  }
}

/** As the adapter of pg does it; without batches, as those that have none. */
export function modelRunner(
  client: ModelClient,
  hasBatches: boolean,
): TransactionRunner<Connection> {
  const unlessDead = async <T>(promise: Promise<T>): Promise<T> => {
    try {
      const value = await promise
      return client.isAlive ? value : NEVER
    } catch (error) {
      if (!client.isAlive) return NEVER
      throw error
    }
  }
  const runner: TransactionRunner<Connection> = {
    async transaction(work, { acquireMs, transactionMs }) {
      const connection = await client.borrow(acquireMs)
      connection.begin(transactionMs)
      try {
        const result = await work(connection)
        await unlessDead(connection.commit())
        client.giveBack(connection, true)
        return result
      } catch (error) {
        const rolledBack = connection.send([{ text: 'rollback', values: [] }])
        const isSound = await awaitAnswer(ROLLBACK_MS, unlessDead(rolledBack)).then(
          () => true,
          () => false,
        )
        client.giveBack(connection, isSound)
        throw error
      }
    },
    async query(tx, text, values, { acquireMs, statementMs } = DEFAULT_LIMITS) {
      if (tx !== undefined) return unlessDead(tx.query({ text, values }))
      const connection = await client.borrow(acquireMs)
      let isSound = false
      try {
        const asked = unlessDead(connection.exchange([{ text, values }]))
        const [rows] = await awaitAnswer(statementMs, asked)
        isSound = true
        return rows ?? []
      } finally {
        client.giveBack(connection, isSound)
      }
    },
  }
  if (!hasBatches) return runner
  return {
    ...runner,
    batch: (tx, statements) => unlessDead(tx.send(statements)),
    commitWith: (tx, statements) => unlessDead(tx.commit(statements)),
  }
}
