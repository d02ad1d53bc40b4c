import type { Pool, PoolClient } from 'pg'
import type { Runner } from './own-runner.js'

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
  'calls the work twice': ({ transaction }) => ({
    transaction: async (work, limits) => {
      await transaction(work, limits)
      return transaction(work, limits)
    },
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
  'begins no transaction': (_sound, on) => ({
    async transaction(work) {
      const client = await on.connect()
      return work(client).finally(() => client.release())
    },
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
  'renames columns': ({ query }) => ({
    query: async (...statement) =>
      (await query(...statement)).map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toUpperCase(), value])),
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
