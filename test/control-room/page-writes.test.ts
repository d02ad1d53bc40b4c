import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { ReceiverName } from '../../example-app/control-room/protocol.js'
import { until } from '../support/until.js'
import { NOT_DONE, STORE_AWAY, useRoom } from './page-panels.js'

const room = useRoom()

/** An eye of the test's own on the store. */
let store: ReturnType<typeof redisStore>
let redis: Redis
beforeAll(() => {
  redis = new Redis(room.redis().url)
  store = redisStore(redis)
})
afterAll(() => {
  store.close()
  redis.disconnect()
})

// A test that fails leaves no write behind that its successors would find.
afterEach(async () => {
  for (const { name, heldWrites } of room.state().receivers) {
    if (heldWrites > 0) await room.act('let-go', { receiver: name })
  }
})

const press = (panel: Locator, name: string): Promise<void> =>
  panel.getByRole('button', { name, exact: true }).click()

const receiverIn = (panel: Locator, name: ReceiverName): Locator =>
  panel.locator(`section[data-receiver="${name}"]`)

/** What was sent last, as a line. */
const lastSent = (panel: Locator): Locator => panel.locator('.writes-sent li').first()

/** Holds a write of a receiver in the middle; resolves with its record. */
async function heldWrite(panel: Locator, name: ReceiverName): Promise<string> {
  await press(panel, `Hold the next write of ${name}`)
  await receiverIn(panel, name).getByText('The next write will be held.').waitFor()
  await press(panel, `Send a write to ${name}`)
  await receiverIn(panel, name).locator('[data-held="1"]').waitFor()
  await lastSent(panel).getByText('waits for its answer').waitFor()
  const running = panel.locator('[data-state="running"]')
  await running.locator('.writes-lease').waitFor()
  return (await running.getAttribute('data-record')) ?? ''
}

const pidOf = (name: ReceiverName): number =>
  room.state().receivers.find((receiver) => receiver.name === name)?.pid ?? 0

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

it('lets a held write go on, and its record gets its answer', async () => {
  const { panel } = await room.open('writes')
  const record = await heldWrite(panel, 'orders-2')
  expect((await store.inspect(record))?.state).toBe('running')
  await press(panel, 'Let go at orders-2')
  await lastSent(panel).getByText('answered 201').waitFor()
  await panel.locator(`[data-record="${record}"][data-state="finished"]`).waitFor()
  expect((await store.inspect(record))?.state).toBe('finished')
})

it('brings a write through the death of its receiver, to the answer of an operator', async () => {
  const { panel } = await room.open('writes')
  const orders = room.state().orders
  const record = await heldWrite(panel, 'orders-1')
  const shown = panel.locator(`[data-record="${record}"]`)
  const pid = pidOf('orders-1')
  expect(isAlive(pid)).toBe(true)

  await press(panel, 'Kill (SIGKILL) orders-1')
  await receiverIn(panel, 'orders-1').getByText('killed').waitFor()
  expect(isAlive(pid)).toBe(false)
  await panel.locator('[data-sent="write"]').first().getByText('waits').waitFor({ state: 'hidden' })

  await press(panel, 'Send the retry to orders-2')
  await lastSent(panel).getByText('answered 409').waitFor()
  await panel.locator(`[data-record="${record}"][data-state="abandoned"]`).waitFor()
  await press(panel, 'Send the retry to orders-2')
  await lastSent(panel).getByText('outcome_unknown').waitFor()

  await shown.getByLabel('it has happened: retries get this answer').check()
  await shown.getByLabel('Status').fill('202')
  await shown.getByLabel('Body, as JSON').fill('{"found":"in the books"}')
  await press(shown, 'Settle')
  await panel.locator(`[data-record="${record}"][data-state="finished"]`).waitFor()
  expect((await store.inspect(record))?.state).toBe('finished')
  await press(panel, 'Send the retry to orders-2')
  await lastSent(panel).getByText('answered 202').waitFor()
  expect(room.state().orders, 'its order was on the books when its receiver died').toBe(orders + 1)

  await press(panel, 'Start orders-1')
  await receiverIn(panel, 'orders-1').getByText('ready').waitFor()
  expect(pidOf('orders-1')).not.toBe(pid)
  await press(panel, 'Send the retry to orders-1')
  await lastSent(panel).getByText('answered 202').waitFor()
})

it('frees a write of which an operator says that nothing has happened', async () => {
  const { panel } = await room.open('writes')
  const record = await heldWrite(panel, 'orders-1')
  await press(panel, 'Kill (SIGKILL) orders-1')
  const shown = panel.locator(`[data-record="${record}"][data-state="abandoned"]`)
  await shown.waitFor()
  await shown.getByLabel('nothing has happened: the next retry runs').check()
  await press(shown, 'Settle')
  await panel.locator(`[data-record="${record}"][data-state="freed"]`).waitFor()
  await press(panel, 'Send the retry to orders-2')
  await lastSent(panel).getByText('answered 201').waitFor()
  await until('its record has its answer', async () => {
    return (await store.inspect(record))?.state === 'finished'
  })
  await press(panel, 'Start orders-1')
  await receiverIn(panel, 'orders-1').getByText('ready').waitFor()
})

it('says what is wrong with an answer, and settles nothing by it', async () => {
  const { panel } = await room.open('writes', NOT_DONE)
  const record = await heldWrite(panel, 'orders-2')
  await press(panel, 'Kill (SIGKILL) orders-2')
  const shown = panel.locator(`[data-record="${record}"][data-state="abandoned"]`)
  await shown.waitFor()
  await shown.getByLabel('it has happened: retries get this answer').check()
  await shown.getByLabel('Body, as JSON').fill('{not json')
  await press(shown, 'Settle')
  await shown.getByRole('alert').filter({ hasText: 'JSON' }).waitFor()
  expect((await store.inspect(record))?.state).toBe('abandoned')
  await press(panel, 'Start orders-2')
  await receiverIn(panel, 'orders-2').getByText('ready').waitFor()
})

/** Kills the receiver of a held write; resolves with the record once it is abandoned. */
async function abandonedWrite(panel: Locator): Promise<Locator> {
  const record = await heldWrite(panel, 'orders-1')
  await press(panel, 'Kill (SIGKILL) orders-1')
  const shown = panel.locator(`[data-record="${record}"]`)
  await shown.and(panel.locator('[data-state="abandoned"]')).waitFor()
  await shown.getByLabel('nothing has happened: the next retry runs').check()
  return shown
}

async function startAgain(panel: Locator): Promise<void> {
  await press(panel, 'Start orders-1')
  await receiverIn(panel, 'orders-1').getByText('ready').waitFor()
}

it('settles a write although the store stands still for a moment', async () => {
  const { panel } = await room.open('writes')
  const shown = await abandonedWrite(panel)
  room.redis().pause()
  setTimeout(() => room.redis().resume(), 800)
  await press(shown, 'Settle')
  await shown.and(panel.locator('[data-state="freed"]')).waitFor()
  await startAgain(panel)
})

it('says that the store does not answer, and settles when asked again', async () => {
  const { page, panel } = await room.open('writes', STORE_AWAY)
  const shown = await abandonedWrite(panel)
  room.redis().pause()
  const refused = page.waitForResponse((response) => response.status() === 503)
  await press(shown, 'Settle')
  await shown
    .getByRole('alert')
    .filter({ hasText: 'The store does not answer' })
    .waitFor()
    .finally(() => room.redis().resume())
  expect(await (await refused).text()).toContain('The store does not answer')
  await press(shown, 'Settle')
  await shown.and(panel.locator('[data-state="freed"]')).waitFor()
  await startAgain(panel)
})
