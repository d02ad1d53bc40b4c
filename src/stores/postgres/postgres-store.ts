import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import { ServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { digestOfParts } from '../../base/digest.js'
import type { CoupledStore } from '../../idempotency/run.js'
import { checkPostgres } from './check.js'
import {
  assertRunner,
  type PostgresStoreOptions,
  parsePostgresOptions,
} from './postgres-options.js'
import { LiveRuns } from './run/live-runs.js'
import { createRun } from './run/run.js'
import type { TransactionRunner } from './runner.js'
import { createStatements, tokenIds } from './sql/statements.js'
import { query, type StoreContext } from './store-context.js'
import { type SweepOptions, sweep, sweepEvery } from './sweep.js'

/** A store whose records commit together with the handler's writes in Postgres. */
export interface PostgresStore<Tx> extends CoupledStore {
  /**
   * Returns the handler's transaction: the object that the client's own transaction function passes to its
   * callback. Once the answer is complete, it and everything made from it fails with `TransactionEndedError`.
   *
   * @throws ServiceAuthError (`wrong_wiring`) if the request has no run of this store, or its answer is complete.
   */
  transactionOf(req: IncomingMessage): Tx
  /**
   * Keeps the handler's writes even if it answers with a 4xx other than 429.
   *
   * @throws ServiceAuthError like `transactionOf`.
   */
  keepWrites(req: IncomingMessage): void
  /**
   * Returns a UUID (version 8, RFC 9562) of the request's key, its scope and `name`. It is the same in
   * every run, so that an effect in another system can be recognised.
   *
   * @throws TypeError if `name` is empty, ServiceAuthError like `transactionOf` and for a request without a key.
   */
  effectId(req: IncomingMessage, name: string): string
  /**
   * Resolves to warnings. Rejects with a `ServiceAuthError` that names each fault: `unavailable` if the
   * database cannot be reached, `unfit` if it is not suitable for this store.
   */
  check(): Promise<readonly string[]>
  /**
   * Deletes expired rows, the oldest first, and resolves to their number: `batch` rows per statement (1 to 50,000;
   * default 5000), at most `limit` per table (default 100,000). Resolves to 0 while another sweep is running.
   *
   * @throws TypeError (as a rejection) if an option is wrong.
   */
  sweep(options?: SweepOptions): Promise<number>
  /** Stops the store's own sweeps, but never closes the client. Later requests that need the store get a 503. */
  close(): void
}

/**
 * Stores the records of idempotency keys and used tokens in Postgres 14 or later. A handler's writes, its record
 * and its answer commit together, and only then is the answer sent. `migration` returns the SQL for the tables.
 *
 * @throws TypeError if `runner` is not a `TransactionRunner`, or an option is unknown or invalid.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { requireIdempotencyKey, serviceAuth } from 'express-service-auth'
 * import { fromPg, postgresStore } from 'express-service-auth/postgres'
 * import { createTestIssuer } from 'express-service-auth/testing'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * const store = postgresStore(fromPg(pool))
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const app = express().use(auth, express.json())
 * app.post('/orders', requireIdempotencyKey({ store }), async (req, res) => {
 *   const transaction = store.transactionOf(req)
 *   await transaction.query('insert into orders (item) values ($1)', [req.body.item])
 *   res.sendStatus(201)
 * })
 * for (const warning of await store.check()) console.warn(warning)
 * ```
 */
export function postgresStore<Tx>(
  runner: TransactionRunner<Tx>,
  options: PostgresStoreOptions = {},
): PostgresStore<Tx> {
  assertRunner(runner)
  const settings = parsePostgresOptions(options)
  const store: StoreContext<Tx> = {
    runner,
    schema: settings.schema,
    statements: createStatements(settings.schema),
    limits: settings,
  }
  const { schema, sweepSeconds } = settings
  const sweeps = sweepSeconds !== false
  const stopSweeping = sweeps ? sweepEvery(sweepSeconds, () => sweep(store)) : undefined
  const liveRuns = new LiveRuns<Tx>()
  const run = createRun(store, liveRuns)
  let isClosed = false

  return {
    async run(request, work) {
      if (isClosed) return { outcome: 'undone', reason: 'store_unavailable' }
      return run(request, work)
    },
    async consume(id, ttlMs) {
      if (isClosed) throw new ServiceAuthError('unavailable', 'the Postgres store is closed')
      const { statements } = store
      const statement = statements.consume({ ids: tokenIds(id, schema), ttlMs })
      return statements.readConsumed(await query(store, statement))
    },
    transactionOf: (req) => liveRuns.of(req, 'transactionOf').transaction(),
    keepWrites(req) {
      liveRuns.of(req, 'keepWrites').keepsWrites = true
    },
    effectId(req, name) {
      if (typeof name !== 'string' || name === '') {
        throw new TypeError('effectId: name must be a non-empty string')
      }
      const { request } = liveRuns.of(req, 'effectId')
      if (request.hasKey) return effectIdOf(request.recordId, name)
      throw wrongWiring("effectId needs a request with an Idempotency-Key (missingKey: 'run')")
    },
    check: AsyncResource.bind(() => checkPostgres(store, sweeps)),
    sweep: (sweepOptions) => sweep(store, sweepOptions),
    close() {
      isClosed = true
      stopSweeping?.()
    },
  }
}

const VERSION_8 = 0x80
const VARIANT = 0x80

/**
 * A UUID of version 8 (RFC 9562, section 5.8) of a record and a name: the first bytes of SHA-256, except
 * for the version and variant bits.
 */
export function effectIdOf(recordId: string, name: string): string {
  const bytes = Buffer.from(digestOfParts(['effect', recordId, name]), 'base64url')
  bytes[6] = VERSION_8 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = VARIANT | ((bytes[8] ?? 0) & 0x3f)
  const hex = bytes.toString('hex', 0, 16)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
