import { afterAll, beforeAll, expect, it } from 'vitest'
import { GOOD_READ } from '../../example-app/control-room/page/compose/good-calls.js'
import { serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { useBrowser } from '../support/browser/chromium.js'
import { builtPage } from './built-page.js'
import { pressPreset } from './compose-page.js'
import { type StartedRoom, startRoom } from './start-room.js'

const browser = useBrowser()
let started: StartedRoom

beforeAll(async () => {
  started = await startRoom()
})
afterAll(() => started?.close())

const AWAY = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE/

it('shows two pages the same', async () => {
  const [one, other] = [await browser.open(started.address), await browser.open(started.address)]
  const before = started.room.state().totals.accepted
  await pressPreset(one, 'A good read', 1)
  for (const page of [one, other]) {
    const totals = page.getByRole('region', { name: 'Requests since the start' })
    await totals.getByText(`accepted${before + 1}`).waitFor()
  }
})

it('says that the line is lost, and is right again when it is back', async () => {
  const page = await browser.open(started.address, { mayComplainOf: AWAY })
  const line = page.getByRole('status').first()
  await line.filter({ hasText: /^Live$/ }).waitFor()
  await started.stopServing()
  await page.getByRole('link', { name: 'Events' }).click()
  const lost = line.filter({ hasText: 'Connection lost' })
  await lost.waitFor()
  // Wherever one is on the page.
  expect((await lost.boundingBox())?.y).toBeGreaterThan(0)
  await page.getByRole('button', { name: 'A good read' }).click()
  await page.getByRole('alert').filter({ hasText: 'The room cannot be reached' }).waitFor()

  // What happens meanwhile is seen afterwards.
  await started.room.act('call', GOOD_READ)
  await started.serveAgain()
  await line.filter({ hasText: /^Live$/ }).waitFor()
  const { accepted } = started.room.state().totals
  await page.getByText(`accepted${accepted}`).waitFor()
})

it('says that its key is out of date when the room was started again', async () => {
  const page = await browser.open(started.address, { mayComplainOf: /403|ERR_/ })
  const line = page.getByRole('status').first()
  await line.filter({ hasText: /^Live$/ }).waitFor()
  await started.stopServing()
  const files = await builtPage()
  const port = Number(new URL(started.address).port)
  const stranger = await serveRoom({ room: async () => started.room, files, port })
  try {
    await line.filter({ hasText: 'The room was started again, at another address' }).waitFor()
  } finally {
    await stranger.close()
    await started.serveAgain()
  }
  await line.filter({ hasText: /^Live$/ }).waitFor()
})

it('leads to each panel, and marks the one in sight', async () => {
  const page = await browser.open(started.address)
  const panels = page.getByRole('navigation', { name: 'Panels' })
  for (const link of await panels.getByRole('link').all()) {
    const id = (await link.getAttribute('href'))?.slice(1) ?? ''
    await link.click()
    await page.waitForFunction((panel) => document.activeElement?.id === panel, id)
  }
  await panels.getByRole('link', { name: 'Tour' }).click()
  await page.locator('nav a[aria-current="true"]', { hasText: 'Tour' }).waitFor()
})
