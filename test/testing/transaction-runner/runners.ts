import type { Pool, PoolClient } from 'pg'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'

export type Runner = TransactionRunner<PoolClient>

/** As a user writes one, for pg. */
export function ownRunner(on: Pool): Runner {
  const connect = (acquireMs: number): Promise<PoolClient> =>
    new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(new Error('too late'))
      }, acquireMs)
      on.connect().then((client) => {
        clearTimeout(timer)
        if (isLate) client.release()
        else resolve(client)
      }, reject)
    })
  const commit = async (client: PoolClient): Promise<void> => {
    const { command } = await client.query('commit')
    if (command !== 'COMMIT') throw new Error('The transaction was dead')
  }
  return {
    async transaction(work, { acquireMs, isolation = 'read committed' }) {
      const client = await connect(acquireMs)
      let broken = false
      try {
        await client.query(`begin isolation level ${isolation}`)
        const result = await work(client)
        await commit(client)
        return result
      } catch (error) {
        await client.query('rollback').catch(() => {
          broken = true
        })
        throw error
      } finally {
        client.release(broken)
      }
    },
    async query(tx, text, values, limits) {
      if (tx) return (await tx.query(text, [...values])).rows
      const client = await connect(limits?.acquireMs ?? 5000)
      const answer = client.query(text, [...values]).finally(() => client.release())
      const timeout = new Promise<never>((_, reject) => {
        const timer = setTimeout(reject, limits?.statementMs ?? 30_000, new Error('no answer'))
        answer.catch(() => {}).finally(() => clearTimeout(timer))
      })
      return (await Promise.race([answer, timeout])).rows
    },
  }
}

type Breaks = (sound: Runner, on: Pool) => Partial<Runner>

/** What each does wrong. */
export const BROKEN_RUNNERS: Readonly<Record<string, Breaks>> = {
  'commits a work that has rejected': ({ query, transaction }) => ({
    async transaction(work, limits) {
      let failure: unknown
      const caught = (tx: PoolClient) =>
        work(tx).catch((error: unknown) => {
          failure = error
          return undefined as never
        })
      const result = await transaction(caught, limits)
      if (failure) throw failure
      return result
    },
    query,
  }),
  'calls the work again when it has failed': ({ transaction }) => ({
    transaction: (work, limits) => transaction(work, limits).catch(() => transaction(work, limits)),
  }),
  'swallows a COMMIT that fails': ({ transaction }) => ({
    async transaction(work, limits) {
      let result: { readonly of: Awaited<ReturnType<typeof work>> } | undefined
      const noted = async (tx: PoolClient) => {
        const of = await work(tx)
        result = { of }
        return of
      }
      return transaction(noted, limits).catch((error: unknown) => {
        if (result) return result.of
        throw error
      })
    },
  }),
  'takes ROLLBACK for COMMIT': ({ transaction }) => ({
    transaction: (work, limits) =>
      transaction(work, limits).catch((error: Error) => {
        if (error.message === 'The transaction was dead') return undefined as never
        throw error
      }),
  }),
  'rejects with an error of its own': ({ transaction }) => ({
    transaction: (work, limits) =>
      transaction(work, limits).catch(() => {
        throw new Error('failed')
      }),
  }),
  'gives no result': ({ transaction }) => ({
    async transaction(work, limits) {
      await transaction(work, limits)
      return undefined as never
    },
  }),
  'sends statements without a transaction to the last one': ({ transaction, query }) => {
    let last: PoolClient | undefined
    return {
      transaction: (work, limits) =>
        transaction(async (tx) => {
          last = tx
          return work(tx).finally(() => {
            last = undefined
          })
        }, limits),
      query: (tx, ...rest) => query(tx ?? last, ...rest),
    }
  },
  'sends the statements of a transaction elsewhere': ({ query }) => ({
    query: (_tx, ...rest) => query(undefined, ...rest),
  }),
  'leaves its transaction open': (_sound, on) => ({
    async transaction(work) {
      const client = await on.connect()
      try {
        await client.query('begin')
        return await work(client)
      } finally {
        client.release()
      }
    },
  }),
  'waits for a connection as long as it takes': ({ transaction }) => ({
    transaction: (work, limits) => transaction(work, { ...limits, acquireMs: 20_000 }),
  }),
  'runs a work that came too late': ({ transaction }) => ({
    transaction: (work, limits) =>
      Promise.race([
        transaction(work, { ...limits, acquireMs: 20_000 }),
        rejectsAfter(limits.acquireMs),
      ]),
  }),
  'sends a statement that came too late': ({ query }) => ({
    query: (tx, text, values, limits) =>
      limits
        ? Promise.race([query(tx, text, values), rejectsAfter(limits.acquireMs)])
        : query(tx, text, values),
  }),
  'waits for a statement as long as it takes': ({ query }) => ({
    query: (tx, text, values, limits) =>
      query(tx, text, values, limits && { ...limits, statementMs: 60_000 }),
  }),
  'forgets the isolation': ({ transaction }) => ({
    transaction: (work, { acquireMs, transactionMs }) =>
      transaction(work, { acquireMs, transactionMs }),
  }),
  'parses text': ({ query }) => ({
    query: async (...statement) =>
      (await query(...statement)).map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [
            name,
            typeof value === 'string' && value.startsWith('{') ? JSON.parse(value) : value,
          ]),
        ),
      ),
  }),
  'hides the error of the server': ({ query }) => ({
    query: (...statement) =>
      query(...statement).catch(() => {
        throw new Error('failed')
      }),
  }),
}

const rejectsAfter = (ms: number): Promise<never> =>
  new Promise((_, reject) => setTimeout(reject, ms, new Error('too late')))
