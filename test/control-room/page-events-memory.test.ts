import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Room } from '../../example-app/control-room/ports.js'
import type { RoomEvent } from '../../example-app/control-room/protocol.js'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { useBrowser } from '../support/chromium.js'
import { builtPage } from './built-page.js'
import { quietRoom } from './quiet-room.js'

const EVENTS = 10_000
const EVENTS_AT_ONCE = 50
/** More would be more than the server keeps for a page that is slow. */
const EVENTS_WAITED_FOR = 1000
const MAX_GROWTH_BYTES = 1_000_000

type Send = Parameters<Room['subscribe']>[0]

const browser = useBrowser()
const pages = new Set<Send>()
let server: RoomServer

beforeAll(async () => {
  const subscribe = (send: Send) => {
    pages.add(send)
    return () => pages.delete(send)
  }
  const room = { ...quietRoom().room, subscribe }
  server = await serveRoom({ room: async () => room, files: await builtPage() })
})
afterAll(() => server.close())

const eventOf = (number: number): RoomEvent => ({
  number,
  at: Date.now(),
  receiver: number % 2 === 0 ? 'orders-1' : 'orders-2',
  channel: 'decision',
  level: 'accepted',
  title: `event-${number}`,
  event: { by: 'serviceAuth', outcome: 'accepted', caller: 'billing', keyId: `key-${number}` },
})

it('holds five hundred of ten thousand events, in the memory that a thousand took', async () => {
  const page = await browser.open(server.address)
  const rows = page.locator('.events-row')
  const devtools = await page.context().newCDPSession(page)
  let last = 0

  async function tell(count: number): Promise<void> {
    for (const end = last + count; last < end; ) {
      const events = Array.from({ length: EVENTS_AT_ONCE }, (_, at) => eventOf(last + at + 1))
      last += EVENTS_AT_ONCE
      for (const send of pages) send('events', { events, leftOut: EVENTS_AT_ONCE })
      if (last % EVENTS_WAITED_FOR === 0) await page.locator(`[data-event="${last}"]`).waitFor()
    }
    await page.locator(`[data-event="${last}"]`).waitFor()
  }

  async function usedBytes(): Promise<number> {
    await devtools.send('HeapProfiler.collectGarbage')
    return (await devtools.send('Runtime.getHeapUsage')).usedSize
  }

  await expect.poll(() => pages.size).toBe(1)
  await tell(EVENTS_AT_ONCE)
  await page.getByLabel('Text').fill('event')
  await tell(1000)
  const before = await usedBytes()
  await tell(EVENTS - last)
  const after = await usedBytes()
  await page.getByRole('button', { name: 'Show all 500' }).click()
  expect(await rows.count()).toBe(500)
  expect(await rows.first().getAttribute('data-event')).toBe(String(EVENTS))
  await page.getByText('A sample: 10,000 more were left out.').waitFor()
  expect(after - before).toBeLessThan(MAX_GROWTH_BYTES)
})
