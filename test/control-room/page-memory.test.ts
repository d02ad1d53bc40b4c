import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { CDPSession } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Feed, openFeed } from '../../example-app/control-room/feed.js'
import type { RoomEvent } from '../../example-app/control-room/protocol.js'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { useBrowser } from '../support/browser/chromium.js'
import { until } from '../support/until.js'
import { builtPage } from './built-page.js'
import { type StartedRoom, startRoom } from './start-room.js'

const MEGABYTE = 1024 * 1024
const EVENTS_AT_ONCE = 250
const PERIOD_MS = 75

const browser = useBrowser()
let started: StartedRoom
let feed: Feed
let server: RoomServer

beforeAll(async () => {
  started = await startRoom()
  const { room } = started
  const stateOfNow = () => ({ ...room.state(), totals: feed.totals() })
  feed = openFeed(stateOfNow)
  const { subscribe } = feed
  server = await serveRoom({ room: async () => ({ ...room, subscribe }), files: await builtPage() })
})
afterAll(async () => {
  await server?.close()
  feed?.close()
  await started?.close()
})

/** What receivers really tell under load. */
async function realEvents(): Promise<readonly RoomEvent[]> {
  const { room } = started
  const found: RoomEvent[] = []
  const end = room.subscribe((type, message) => {
    if (type === 'events' && 'events' in message) found.push(...(message.events as RoomEvent[]))
  })
  await room.act('background-load', { callsPerSecond: 300 })
  await until('there are events', async () => found.length >= EVENTS_AT_ONCE)
  await room.act('background-load', { callsPerSecond: 0 })
  end()
  return found.slice(0, EVENTS_AT_ONCE)
}

/** The same again and again, as if receivers had told them, each event of a request of its own. */
async function tell(events: readonly RoomEvent[], count: number): Promise<void> {
  const requests = events.map(() => {
    const milliseconds = 1 + Math.random()
    return { receiver: 'orders-1', outcome: 'accepted', milliseconds } as const
  })
  const cache = { hits: 1, misses: 1 }
  for (let told = 0; told < count; told += events.length) {
    const now = Date.now()
    const news = events.map(({ number: _, ...event }) => structuredClone({ ...event, at: now }))
    feed.receive({ receiver: 'orders-1', events: news, requests, storeCalls: [], cache })
    await delay(PERIOD_MS)
  }
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

async function memory(devtools: CDPSession) {
  collectGarbage()
  const server = process.memoryUsage().heapUsed
  await devtools.send('HeapProfiler.collectGarbage')
  const { usedSize: page } = await devtools.send('Runtime.getHeapUsage')
  const { nodes, jsEventListeners } = await devtools.send('Memory.getDOMCounters')
  return { server, page, nodes, jsEventListeners }
}

/** What the page has just taken away can outlive a collection. */
async function leastMemory(devtools: CDPSession) {
  let least = await memory(devtools)
  for (let again = 0; again < 3; again += 1) {
    await delay(PERIOD_MS)
    const now = await memory(devtools)
    if (now.nodes < least.nodes) least = now
  }
  return least
}

it('keeps its memory through ten thousand events, in the page and in the server', async () => {
  const events = await realEvents()
  const page = await browser.open(server.address)
  const devtools = await page.context().newCDPSession(page)
  const told = (count: string) =>
    page.getByRole('region', { name: 'Requests since the start' }).getByText(`accepted${count}`)

  await tell(events, 10_000)
  await told('10,000').waitFor()
  const before = await leastMemory(devtools)
  await tell(events, 10_000)
  await told('20,000').waitFor()
  const after = await leastMemory(devtools)

  expect(after.page - before.page).toBeLessThan(2 * MEGABYTE)
  expect(after.server - before.server).toBeLessThan(4 * MEGABYTE)
  expect(after.nodes - before.nodes).toBeLessThan(500)
  expect(after.jsEventListeners - before.jsEventListeners).toBeLessThan(100)
})
