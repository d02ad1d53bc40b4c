import { Pool, type PoolClient } from 'pg'
import { onTestFinished } from 'vitest'
import type { CoupledStore, RunOutcome } from '../../../src/idempotency/run.js'
import { fromPg } from '../../../src/stores/postgres/adapters/pg.js'
import { LiveRuns } from '../../../src/stores/postgres/run/live-runs.js'
import { createRun } from '../../../src/stores/postgres/run/run.js'
import type { Isolation } from '../../../src/stores/postgres/runner.js'
import { migration } from '../../../src/stores/postgres/schema.js'
import { createStatements, type Statements } from '../../../src/stores/postgres/sql/statements.js'

/** What of the statements is another than in the store. */
export type Mutation = (real: Statements) => Partial<Statements>

export interface MutatedStore extends CoupledStore {
  /** The transaction of a run. */
  transactionOf(requester: object): PoolClient
  /** A run whose handler writes one effect under the key. */
  write(key: string, body: string): Promise<RunOutcome>
  /** How often a handler has begun. */
  readonly handled: number
}

/**
 * A changed copy of the function `begin_run` beside the real one: the SQL that makes it, and the mutation by
 * which a store calls it.
 */
export function mutatedFunction(
  name: string,
  from: RegExp,
  to: (found: string) => string,
): { readonly sql: string; readonly mutation: Mutation } {
  const real = migration()
  const changed = real.replace(from, to)
  if (changed === real) throw new Error('begin_run has another text')
  const renamed = (text: string): string => text.replaceAll('begin_run(', `${name}(`)
  return {
    sql: renamed(changed),
    mutation: ({ begin: open }) => ({
      begin(ids, opening) {
        const { text, values } = open(ids, opening)
        return { text: renamed(text), values }
      },
    }),
  }
}

/** A store on a pool of its own, whose statements are changed. */
export function openMutated(url: string, mutation: Mutation, isolation?: Isolation): MutatedStore {
  const schema = 'service_auth'
  const pool = new Pool({ connectionString: url, max: 4 })
  onTestFinished(() => pool.end())
  const real = createStatements(schema)
  const limits = { acquireMs: 5000, transactionMs: 20_000, resolveMs: 2000, isolation }
  const statements = { ...real, ...mutation(real) }
  const live = new LiveRuns<PoolClient>()
  const run = createRun({ runner: fromPg(pool), schema, statements, limits }, live)
  let handled = 0
  const notHere = async (): Promise<never> => {
    throw new Error('No test needs it')
  }
  return {
    run,
    consume: notHere,
    transactionOf: (requester) => live.of(requester, 'the test').transaction(),
    get handled() {
      return handled
    },
    write(key, body) {
      const requester = {}
      const record = { recordId: key, fingerprint: body, hasKey: true }
      const request = { ...record, retentionMs: 60_000, requester }
      return run(request, async (handling) => {
        handled += 1
        const tx = live.of(requester, 'the test').transaction()
        await tx.query('insert into effect (key) values ($1)', [key])
        handling.answered()
        return { type: 'answered', status: 201, result: Buffer.from('["a result"]') }
      })
    },
  }
}
