import type { Row, Statement } from '../runner.js'
import { boundValue, readValue } from './pg-values.js'

/** The functions of pg's `Connection` that a custom query may call. */
interface PgConnectionLike {
  readonly stream: { cork?(): void; uncork?(): void }
  query(text: string): void
  parse(query: { name: string; text: string; types: string[] }, more: boolean): void
  bind(config: { values: (Buffer | string | null)[] }, more: boolean): void
  describe(message: { type: string; name?: string }, more: boolean): void
  execute(config: null, more: boolean): void
  sync(): void
}

export interface StatementResult {
  readonly rows: Row[]
  /** The command tag, such as `COMMIT`; empty if the statement did not complete. */
  command: string
}

interface BoundStatement {
  readonly text: string
  readonly values: (Buffer | string | null)[]
}

interface Field {
  readonly name: string
  readonly dataTypeID: number
}

/**
 * Several statements in one round trip, as a custom query for pg's `client.query`. Statements without
 * values are sent as one simple query, others each with Parse, Bind and Execute before one Sync; in
 * both cases Postgres skips the statements after one that fails. Statements are unnamed, for pgbouncer.
 */
export class PgExchange {
  /** Resolves when the server is ready for the next query; rejects if a statement or the connection fails. */
  readonly settled: Promise<StatementResult[]>
  /** Called by pg when its own `query_timeout` is reached, and by this class, so that pg stops its timer. */
  callback: (error: Error | null, results?: StatementResult[]) => void

  readonly #results: StatementResult[] = [{ rows: [], command: '' }]
  #statements: readonly BoundStatement[] | undefined
  #connection: PgConnectionLike | undefined
  #fields: readonly Field[] = []

  /** Without statements the exchange keeps its place among the client's queries until `send`. */
  constructor(statements?: readonly Statement[]) {
    this.#statements = statements?.map(bind)
    this.callback = () => {}
    this.settled = new Promise((resolve, reject) => {
      this.callback = (error, results = []) => (error ? reject(error) : resolve(results))
    })
    // A failure must not become an unhandled rejection: `settled` may have no listener.
    this.settled.catch(() => {})
  }

  send(statements: readonly Statement[]): void {
    this.#statements = statements.map(bind)
    if (this.#connection) this.submit(this.#connection)
  }

  submit(connection: PgConnectionLike): undefined {
    this.#connection = connection
    const statements = this.#statements
    if (statements === undefined) return
    connection.stream.cork?.()
    try {
      if (statements.every(({ values }) => values.length === 0)) {
        connection.query(statements.map(({ text }) => text).join(';\n'))
      } else {
        sendExtended(connection, statements)
      }
    } finally {
      connection.stream.uncork?.()
    }
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#fields = fields
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    const row: Row = {}
    this.#fields.forEach(({ name, dataTypeID }, index) => {
      const text = fields[index] ?? null
      row[name] = text === null ? null : readValue(dataTypeID, text)
    })
    this.#last().rows.push(row)
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#last().command = text
    this.#results.push({ rows: [], command: '' })
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#results.slice(0, -1))
  }

  handleError(error: Error): void {
    this.callback(error)
  }

  handlePortalSuspended(): void {}

  handleEmptyQuery(): void {}

  handleCopyInResponse(connection: { sendCopyFail(message: string): void }): void {
    connection.sendCopyFail('COPY is not possible here')
  }

  handleCopyData(): void {}

  #last(): StatementResult {
    return this.#results[this.#results.length - 1] as StatementResult
  }
}

/** Runs before anything is sent: a value that cannot be bound must not leave an incomplete exchange. */
function bind({ text, values }: Statement): BoundStatement {
  return { text, values: values.map(boundValue) }
}

function sendExtended(connection: PgConnectionLike, statements: readonly BoundStatement[]): void {
  for (const { text, values } of statements) {
    connection.parse({ name: '', text, types: [] }, true)
    connection.bind({ values }, true)
    connection.describe({ type: 'P', name: '' }, true)
    connection.execute(null, true)
  }
  connection.sync()
}
