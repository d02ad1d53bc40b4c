import { expect, it } from 'vitest'
import { consumeWithin } from '../../../../src/stores/postgres/postgres-store.js'
import type { LiveRun } from '../../../../src/stores/postgres/run/live-runs.js'
import type { Row } from '../../../../src/stores/postgres/runner.js'
import { createStatements } from '../../../../src/stores/postgres/sql/statements.js'

const token = { id: 'a token', ttlMs: 1000 }

/**
 * A token that is being used up; `answer` is what the database says in the end, `found` what it says
 * outside of the transaction.
 */
function consuming(found: readonly Row[] = []) {
  let answer = (_rows: readonly Row[]): void => {}
  let fail = (_error: Error): void => {}
  const answered = new Promise<readonly Row[]>((resolve, reject) => {
    answer = resolve
    fail = reject
  })
  const store = {
    runner: {
      query: (inside: object | undefined) =>
        inside === undefined ? Promise.resolve(found) : answered,
      transaction: () => Promise.reject(new Error('none')),
    },
    schema: 'service_auth',
    statements: createStatements('service_auth'),
    limits: { acquireMs: 1, transactionMs: 1, resolveMs: 1 },
  }
  const usedTokens: (typeof token)[] = []
  const tx = {}
  const run: LiveRun<object> = {
    recordId: 'key',
    tx,
    transaction: () => tx,
    endCalls: () => Promise.resolve(),
    revoke: () => {},
    usedTransaction: false,
    keepsWrites: false,
    usedTokens,
    serverFailure: undefined,
    recordFailure: () => {},
  }
  return { consumed: consumeWithin(store, run, token), usedTokens, answer, fail }
}

it('a token counts as used while the database has not answered, and once it has recorded it', async () => {
  const { consumed, usedTokens, answer } = consuming()
  expect(usedTokens).toEqual([token])
  answer([{ consumed: 'yes' }])
  expect(await consumed).toBe(true)
  expect(usedTokens).toEqual([token])
})

it('a token that was used before is none of the run', async () => {
  const { consumed, usedTokens, answer } = consuming([])
  answer([])
  expect(await consumed).toBe(false)
  expect(usedTokens).toEqual([])
})

it('a conflict over a token that another has used is no error', async () => {
  const { consumed, usedTokens, fail } = consuming([{ used: 'yes' }])
  fail(Object.assign(new Error('conflict'), { code: '40001' }))
  expect(await consumed).toBe(false)
  expect(usedTokens).toEqual([])
})

it.each([
  ['a conflict over something else', Object.assign(new Error('conflict'), { code: '40001' })],
  ['a connection that was lost', new Error('connection lost')],
])('a token that was tried counts as used after %s', async (_what, error) => {
  const { consumed, usedTokens, fail } = consuming([])
  fail(error)
  await expect(consumed).rejects.toThrow(error.message)
  expect(usedTokens).toEqual([token])
})
