import type { Pool, PoolClient } from 'pg'
import type { TransactionRunner } from '../../src/stores/postgres/runner.js'

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
