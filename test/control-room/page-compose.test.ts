import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useBrowser } from '../support/browser/chromium.js'
import { until } from '../support/until.js'
import { callIsOver, pressPreset, readViews } from './compose-page.js'
import { type StartedRoom, startRoom } from './start-room.js'

const browser = useBrowser()
let started: StartedRoom

beforeAll(async () => {
  started = await startRoom()
})
afterAll(() => started?.close())

const orders = (): number => started.room.state().orders

interface Expected {
  readonly preset: string
  readonly calls: number
  readonly status: number
  readonly seen: string
  readonly failedStep?: string
  readonly newOrders: number
}

const PRESETS: readonly Expected[] = [
  { preset: 'A good read', calls: 1, status: 200, seen: 'accepted', newOrders: 0 },
  { preset: 'A good write', calls: 1, status: 201, seen: 'accepted', newOrders: 1 },
  { preset: 'The same write again', calls: 2, status: 201, seen: 'replayed', newOrders: 1 },
  {
    preset: 'A tampered token',
    calls: 1,
    status: 401,
    seen: 'refused signature_invalid',
    failedStep: 'Signature',
    newOrders: 0,
  },
  {
    preset: 'A permission missing',
    calls: 1,
    status: 403,
    seen: 'refused permission_missing',
    failedStep: 'Permissions',
    newOrders: 0,
  },
  {
    preset: 'A token used twice',
    calls: 2,
    status: 401,
    seen: 'refused token_replayed',
    failedStep: 'Token used once',
    newOrders: 1,
  },
  {
    preset: 'Another body',
    calls: 2,
    status: 422,
    seen: 'refused key_reused',
    failedStep: 'Idempotency-Key',
    newOrders: 1,
  },
]

it.each(PRESETS)('sends $preset, and shows what both sides saw of it', async (expected) => {
  const page = await browser.open(started.address)
  const before = orders()
  await pressPreset(page, expected.preset, expected.calls)
  const { caller, operator, failedStep } = await readViews(page)
  expect(caller.headline).toContain(`Status ${expected.status}, `)
  expect(caller.bytes).toMatch(new RegExp(`^HTTP/1.1 ${expected.status} `))
  expect(operator).toContain(expected.seen)
  expect(failedStep).toBe(expected.failedStep)
  if (expected.status >= 400) expect(caller.bytes).not.toContain(expected.seen.split(' ')[1])
  expect(orders() - before).toBe(expected.newOrders)
})

it('decodes the token that was sent, and copies the call as curl', async () => {
  const page = await browser.open(started.address, {
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  await pressPreset(page, 'A good write', 1)
  const payload = await page.getByRole('region', { name: 'Payload of the token' }).textContent()
  expect(JSON.parse(payload ?? '')).toMatchObject({ sub: 'billing', permissions: ['orders:write'] })
  const request = await page
    .getByRole('region', { name: 'The request as it was sent' })
    .textContent()
  expect(request).toContain('Idempotency-Key: "')
  expect(request).toMatch(/Authorization: Bearer \S{1,40}…/)
  await page.getByText('As curl').click()
  await page.getByRole('button', { name: 'Copy' }).click()
  await page.getByText('Copied.').waitFor()
  const curl = await page.getByRole('region', { name: 'The request as curl' }).textContent()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(curl)
  expect(curl).toMatch(/^printf 'Authorization: Bearer /)
})

async function chooseHostile(page: Page, words: string): Promise<void> {
  await page.getByRole('combobox', { name: 'What is done to the token' }).click()
  await page.keyboard.type(words)
  await page.keyboard.press('Enter')
}

it('sends a hostile token that was found by its words', async () => {
  const page = await browser.open(started.address)
  await chooseHostile(page, 'alg none good')
  const name = await page.getByRole('combobox', { name: 'What is done' }).inputValue()
  expect(name).toBe('alg none, a good signature')
  await page.getByRole('button', { name: 'Send it' }).click()
  await callIsOver(page, 1)
  const { caller, operator, failedStep } = await readViews(page)
  expect(caller.headline).toContain('Status 401')
  expect(operator).toContain('algorithm_not_allowed')
  expect(failedStep).toBe('Header and algorithm')
  await page.getByText('Why it must be refused: Unsigned tokens prove nothing.').waitFor()
})

it('writes once when twenty equal writes come at once to both receivers', async () => {
  const page = await browser.open(started.address)
  const before = orders()
  await page.getByRole('radio', { name: 'POST, a write' }).check()
  await page.getByRole('checkbox', { name: 'orders:write' }).check()
  await page.getByRole('button', { name: 'Twenty at once' }).click()
  await page.getByText('1 new order on the books').waitFor()
  const rows = await page
    .getByRole('table', { name: 'Answers to the calls' })
    .getByRole('row')
    .all()
  const numbers = await Promise.all(
    rows.slice(1).map((row) => row.getByRole('cell').first().textContent()),
  )
  expect(numbers.map(Number).reduce((sum, each) => sum + each, 0)).toBe(20)
  expect(orders() - before).toBe(1)
})

it('counts a hundred reads, one after another', async () => {
  const page = await browser.open(started.address)
  const { accepted } = started.room.state().totals
  await page.getByRole('button', { name: 'Send a hundred' }).click()
  await page.getByText(/^100 calls in .*, 0 new orders on the books$/).waitFor()
  const row = page.getByRole('row').filter({ hasText: '200' })
  await row.waitFor()
  expect((await row.boundingBox())?.height, 'one line').toBeLessThan(45)
  expect(started.room.state().totals.accepted).toBeGreaterThanOrEqual(accepted + 100)
})

it('lets others call in the background, until it is ended', async () => {
  const page = await browser.open(started.address)
  const load = page.getByRole('combobox', { name: 'Calls in the background' })
  const { accepted } = started.room.state().totals
  await load.selectOption('50 a second')
  await until('calls have come', async () => started.room.state().totals.accepted > accepted + 10)
  expect(started.room.state().backgroundLoad).toBe(50)
  await load.selectOption('none')
  await until('it has ended', async () => started.room.state().backgroundLoad === 0)
})

it('says beside the button why the room does not send a call', async () => {
  const page = await browser.open(started.address, { mayComplainOf: /400/ })
  await page.getByRole('textbox', { name: 'Caller' }).fill('')
  await page.getByRole('button', { name: 'Send it' }).click()
  await page
    .getByRole('alert')
    .filter({ hasText: 'the caller must have 1 to 200 characters' })
    .waitFor()
})

it('says that a receiver was killed, and starts it', async () => {
  const page = await browser.open(started.address)
  await started.room.act('kill-receiver', { receiver: 'orders-2' })
  await page.getByRole('radio', { name: 'orders-2 (killed)' }).check()
  await page.getByRole('button', { name: 'Send it' }).click()
  await callIsOver(page, 1)
  const { caller, operator } = await readViews(page)
  expect(caller.headline).toMatch(/^No answer: orders-2 was killed/)
  expect(caller.why).not.toMatch(/write/)
  expect(operator).toContain('nothing')
  await page.locator('#views').getByRole('button', { name: 'Start orders-2' }).click()
  await page.getByRole('radio', { name: 'orders-2', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Send it' }).click()
  await callIsOver(page, 2)
  expect((await readViews(page)).caller.headline).toContain('Status 200')
})
