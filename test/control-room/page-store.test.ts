import { afterAll, beforeAll, expect, it } from 'vitest'
import { GOOD_WRITE } from '../../example-app/control-room/page/compose/good-calls.js'
import type { CallResult } from '../../example-app/control-room/protocol.js'
import { useBrowser } from '../support/browser/chromium.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { type StartedRoom, startRoom } from './start-room.js'

const browser = useBrowser()
let redis: RedisServer
let started: StartedRoom

beforeAll(async () => {
  redis = await startRedis()
  started = await startRoom({ redisUrl: redis.url })
})
afterAll(async () => {
  await started?.close()
  await redis?.stop()
})

async function write(): Promise<number | undefined> {
  const result = (await started.room.act('call', GOOD_WRITE)) as CallResult
  return 'status' in result.answer ? result.answer.status : undefined
}

it('says that the store has gone, goes on without it, and is right again with it', async () => {
  const page = await browser.open(started.address)
  const store = page.locator('#writes').getByText(/^Store: /)
  await store.getByText('up', { exact: true }).waitFor()
  expect(await write()).toBe(201)

  await redis.kill()
  await store.getByText('down', { exact: true }).waitFor()
  expect(await write()).toBe(503)
  const totals = page.getByRole('region', { name: 'Requests since the start' })
  await totals.getByText('undecided1').waitFor()
  await totals.getByText('accepted1').waitFor()
  await page
    .getByRole('status')
    .first()
    .filter({ hasText: /^Live$/ })
    .waitFor()

  await redis.restart()
  await store.getByText('up', { exact: true }).waitFor()
  await expect.poll(write).toBe(201)
})
