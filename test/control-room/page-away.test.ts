import { afterAll, beforeAll, expect, it } from 'vitest'
import { GOOD_READ } from '../../example-app/control-room/page/compose/good-calls.js'
import type { Room } from '../../example-app/control-room/ports.js'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { useBrowser } from '../support/browser/chromium.js'
import { until } from '../support/until.js'
import { builtPage } from './built-page.js'
import { type StartedRoom, startRoom } from './start-room.js'

/** Beyond what browser, kernel and server hold of a stream that nobody reads. */
const MAX_SENT_BYTES = 100 * 1024 * 1024

const STATES_AT_ONCE = 200

const browser = useBrowser()
const pages = new Set<Parameters<Room['subscribe']>[0]>()
let started: StartedRoom
let server: RoomServer

beforeAll(async () => {
  started = await startRoom()
  const { room } = started
  // The same room, of which much can be told at once.
  const subscribe: Room['subscribe'] = (send) => {
    const end = room.subscribe(send)
    pages.add(send)
    return () => {
      pages.delete(send)
      end()
    }
  }
  server = await serveRoom({ room: async () => ({ ...room, subscribe }), files: await builtPage() })
})
afterAll(async () => {
  await server?.close()
  await started?.close()
})

it('lets a page go that has been asleep for long, which comes back and shows what is now', async () => {
  const page = await browser.open(server.address, { mayComplainOf: /ERR_INCOMPLETE_CHUNKED/ })
  const line = page.getByRole('status').first()
  await line.filter({ hasText: /^Live$/ }).waitFor()
  // A page that waits for an answer does nothing else, as one whose machine sleeps.
  const asks = page.waitForEvent('dialog')
  page.evaluate(() => alert('Asleep')).catch(() => undefined)
  const dialog = await asks

  const state = started.room.state()
  const bytes = JSON.stringify(state).length
  let told = 0
  await until('the page is let go', async () => {
    for (let times = 0; times < STATES_AT_ONCE; times += 1) {
      for (const send of pages) send('state', state)
      told += bytes
    }
    expect(told).toBeLessThan(MAX_SENT_BYTES)
    return pages.size === 0
  })
  await started.room.act('call', GOOD_READ)
  await dialog.accept()

  const totals = page.getByRole('region', { name: 'Requests since the start' })
  await totals.getByText(`accepted${state.totals.accepted + 1}`).waitFor()
  await line.filter({ hasText: /^Live$/ }).waitFor()
  // The page has asked why its line was lost, and that request may end after the new line began.
  await until('there is one line', async () => pages.size === 1)
})
