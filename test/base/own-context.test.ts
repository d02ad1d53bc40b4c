import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { captureContext } from '../../src/base/own-context.js'

const storage = new AsyncLocalStorage<string>()

test('work runs in the context in which its owner was made, with all that follows from it', async () => {
  const inOwnContext = storage.run('owner', () => captureContext('test'))
  const seen: unknown[] = []
  const note = (): unknown => seen.push(storage.getStore())
  await storage.run('request', async () => {
    await inOwnContext(async () => {
      note()
      await sleep(1)
      note()
      setImmediate(note)
    })
    note()
    await sleep(5)
  })
  expect(seen).toEqual(['owner', 'owner', 'request', 'owner'])
})

test('it gives what the work gives, and throws what it throws', () => {
  const inOwnContext = captureContext('test')
  expect(inOwnContext(() => 5)).toBe(5)
  const error = new Error('the work failed')
  expect(() =>
    inOwnContext(() => {
      throw error
    }),
  ).toThrow(error)
})
