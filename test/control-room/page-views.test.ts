import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useBrowser } from '../support/browser/chromium.js'
import { callIsOver, pressPreset, readViews } from './compose-page.js'
import { type StartedRoom, startRoom } from './start-room.js'

const browser = useBrowser()
let started: StartedRoom

beforeAll(async () => {
  started = await startRoom()
})
afterAll(() => started?.close())

it('tells a newcomer that two refusals look the same to their callers, and why', async () => {
  const page = await browser.open(started.address)
  await pressPreset(page, 'A tampered token', 1)
  await page.getByText('Every token that does not hold gets this one answer').waitFor()
  await page.getByRole('button', { name: 'A token used twice' }).click()
  await callIsOver(page, 3)
  const caller = page.getByRole('region', { name: 'What the caller got' })
  const twin = await caller.getByText('got the same bytes').textContent()
  expect(twin).toBe(
    'Call 1 got the same bytes (but for the date), and its reason was signature_invalid.',
  )
  await page.getByRole('button', { name: 'A permission missing' }).click()
  await callIsOver(page, 4)
  await caller.getByText('its caller may not do this').waitFor()
  expect(await caller.getByText('got the same bytes').count()).toBe(0)
})

it('goes back to an earlier call', async () => {
  const page = await browser.open(started.address)
  await pressPreset(page, 'A good read', 1)
  await page.getByRole('button', { name: 'A tampered token' }).click()
  await callIsOver(page, 2)
  const history = page.getByRole('navigation', { name: 'The last calls' })
  await history.getByRole('button', { name: /^1 / }).click()
  expect((await readViews(page)).caller.headline).toContain('Status 200')
  await history.getByRole('button', { name: /^2 / }).click()
  expect((await readViews(page)).caller.headline).toContain('Status 401')
  expect(await history.getByRole('listitem').count()).toBe(2)
})

it('says that a held write has no answer yet, and shows the answer when it comes', async () => {
  const page = await browser.open(started.address)
  await started.room.act('hold-next-write', { receiver: 'orders-1', isHolding: true })
  await page.getByRole('button', { name: 'A good write' }).click()
  await page.getByText('Call 1 is under way').waitFor()
  await page.getByRole('button', { name: 'A good read' }).click()
  await callIsOver(page, 2)
  await started.room.act('let-go', { receiver: 'orders-1' })
  const history = page.getByRole('navigation', { name: 'The last calls' })
  await history.getByRole('button', { name: /^1 .*201/ }).click()
  expect((await readViews(page)).operator).toContain('accepted')
})

/** What scrolls within the page, apart from the list that opens over it. */
const scrollersIn = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('#room *:not([role="listbox"])')]
      .filter((element) => /auto|scroll/.test(getComputedStyle(element).overflowY))
      .filter(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)
      .map(({ outerHTML }) => outerHTML.slice(0, 80)),
  )

const sidewaysIn = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

async function boxOf(page: Page, name: string) {
  const box = await page.getByRole('region', { name }).boundingBox()
  if (!box) throw new Error(`${name} is not there`)
  return box
}

it('shows the whole composer and both views at 1280 by 800, without a scroll inside the page', async () => {
  const page = await browser.open(started.address, { viewport: { width: 1280, height: 800 } })
  await pressPreset(page, 'A token used twice', 2)
  const composer = await boxOf(page, 'Compose a call')
  expect(composer.y).toBeGreaterThan(0)
  expect(composer.y + composer.height).toBeLessThan(800)
  const caller = await boxOf(page, 'What the caller got')
  const operator = await boxOf(page, 'What the operator saw')
  expect(caller.y).toBe(operator.y)
  expect(caller.y).toBeLessThan(400)
  await page.getByText(/events of the package/).click()
  expect(await scrollersIn(page)).toEqual([])
  expect(await sidewaysIn(page)).toBe(0)
})

it('brings the answer into view after a press on a phone', async () => {
  const page = await browser.open(started.address, { viewport: { width: 390, height: 844 } })
  for (const [call, button] of ['A good read', 'Send it'].entries()) {
    await page.getByRole('button', { name: button }).click()
    await callIsOver(page, call + 1)
    const status = await page.getByText(/^Status 200/).boundingBox()
    expect(status?.y).toBeGreaterThan(48)
    expect(status?.y).toBeLessThan(600)
  }
  expect(await sidewaysIn(page)).toBe(0)
})
