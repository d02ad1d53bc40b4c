import { expect, test } from 'vitest'
import type { LiveRun } from '../../../src/stores/postgres/live-runs.js'
import type { Row } from '../../../src/stores/postgres/runner.js'
import { consumeWithin } from '../../../src/stores/postgres/single-use.js'
import { createStatements } from '../../../src/stores/postgres/statements.js'

const token = { id: 'a token', ttlMs: 1000 }

/** A token that is being used up; `answer` is what the database says in the end. */
function consuming() {
  let answer = (_rows: readonly Row[]): void => {}
  let fail = (_error: Error): void => {}
  const answered = new Promise<readonly Row[]>((resolve, reject) => {
    answer = resolve
    fail = reject
  })
  const place = {
    runner: { query: () => answered, transaction: () => Promise.reject(new Error('none')) },
    schema: 'service_auth',
    statements: createStatements('service_auth'),
    limits: { acquireMs: 1, transactionMs: 1, resolveMs: 1 },
  }
  const usedTokens: (typeof token)[] = []
  const tx = {}
  const run: LiveRun<object> = {
    key: 'key',
    tx,
    handle: () => tx,
    usedTransaction: false,
    keepsWrites: false,
    usedTokens,
  }
  return { consumed: consumeWithin(place, run, token), usedTokens, answer, fail }
}

test('a token counts as used while the database has not answered, and once it has recorded it', async () => {
  const { consumed, usedTokens, answer } = consuming()
  expect(usedTokens).toEqual([token])
  answer([{ consumed: 'yes' }])
  expect(await consumed).toBe(true)
  expect(usedTokens).toEqual([token])
})

test('a token that was used before, or that could not be recorded, is none of the run', async () => {
  const before = consuming()
  before.answer([])
  expect(await before.consumed).toBe(false)
  expect(before.usedTokens).toEqual([])

  const conflicting = consuming()
  conflicting.fail(Object.assign(new Error('conflict'), { code: '40001' }))
  expect(await conflicting.consumed).toBe(false)
  expect(conflicting.usedTokens).toEqual([])

  const lost = consuming()
  lost.fail(new Error('connection lost'))
  await expect(lost.consumed).rejects.toThrow('connection lost')
  expect(lost.usedTokens).toEqual([])
})
