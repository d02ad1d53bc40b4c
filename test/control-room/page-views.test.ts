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

it.each([
  [1280, true],
  [390, false],
])('at %i pixels, shows the views side by side: %s', async (width, isBeside) => {
  const page = await browser.open(started.address, { viewport: { width, height: 800 } })
  await pressPreset(page, 'A tampered token', 1)
  const boxOf = (name: string) => page.getByRole('region', { name }).boundingBox()
  const caller = await boxOf('What the caller got')
  const operator = await boxOf('What the operator saw')
  if (!caller || !operator) throw new Error('a view is not there')
  expect(caller.y === operator.y).toBe(isBeside)
  expect(caller.x === operator.x).toBe(!isBeside)
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  )
  expect(overflow).toBe(0)
})
