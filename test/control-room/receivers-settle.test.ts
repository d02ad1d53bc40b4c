import { randomUUID } from 'node:crypto'
import { memoryStore } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { UnavailableError } from '../../example-app/control-room/ports.js'
import { settleWrite } from '../../example-app/control-room/receivers/settle-write.js'
import { startRedis } from '../support/redis/redis.js'

const MINUTE_MS = 60_000
const FREED = { as: 'freed' } as const

it('a write that is not settled says why', async () => {
  const store = memoryStore()
  onTestFinished(() => store.close())
  const run = {
    key: 'r',
    owner: 'o',
    fingerprint: 'f',
    leaseMs: MINUTE_MS,
    retentionMs: MINUTE_MS,
  }
  const settle = (fence: number, record = run.key) =>
    settleWrite({ record, fence, ...FREED }, { store, program: undefined })
  const no = (why: RegExp) => ({ isSettled: false, why: expect.stringMatching(why) })
  expect(await settle(1, 'nothing')).toEqual(no(/no such record/))

  const reserved = await store.reserve({ ...run, rerunAbandoned: false })
  const fence = 'fence' in reserved ? reserved.fence : 0
  expect(await settle(fence)).toEqual(no(/holds its lease/))
  expect(await settle(fence + 1)).toEqual(no(new RegExp(`fence is ${fence},`)))
  await store.settle({ ...run, fence }, { type: 'abandoned' })
  expect(await settle(fence)).toEqual({ isSettled: true })
  expect(await settle(fence)).toEqual(no(/free already/))
})

it('a store that hangs is unavailable, and no fault of the order', async () => {
  const server = await startRedis()
  const redis = new Redis(server.url)
  redis.on('error', () => undefined)
  const store = redisStore(redis)
  onTestFinished(async () => {
    store.close()
    redis.disconnect()
    await server.stop()
  })
  await store.check()
  server.pause()
  const settled = settleWrite({ record: randomUUID(), fence: 1, ...FREED }, { store, program: '' })
  await expect(settled).rejects.toThrow(UnavailableError)
  await expect(settled).rejects.toThrow(/store does not answer/)
})
