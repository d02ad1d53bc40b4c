import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { GOOD_WRITE } from '../../example-app/control-room/page/compose/good-calls.js'
import { OUTCOMES } from '../../example-app/control-room/protocol.js'
import { useRoom } from './page-panels.js'

const room = useRoom()

const CLICK_MS = 400

/** Whether a plot has something in the colour that a custom property of the page names. */
function hasColour(chart: Locator, property: string): Promise<boolean> {
  return chart.locator('canvas').evaluate((canvas: HTMLCanvasElement, name: string) => {
    const wanted = getComputedStyle(canvas).getPropertyValue(name).trim()
    const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(wanted.slice(at, at + 2), 16))
    const { width, height } = canvas
    const copy = Object.assign(document.createElement('canvas'), { width, height })
    const context = copy.getContext('2d', { willReadFrequently: true })
    context?.drawImage(canvas, 0, 0)
    const { data } = context?.getImageData(0, 0, width, height) ?? { data: [] }
    for (let at = 0; at < data.length; at += 4) {
      if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) return true
    }
    return false
  }, property)
}

const chartOf = (panel: Locator, plot: string): Locator => panel.locator(`[data-plot="${plot}"]`)

/** Waits until the table says that there was some of this in the last minute. */
function highest(panel: Locator, row: string) {
  const cells = panel.getByRole('row', { name: row }).getByRole('cell')
  return expect.poll(async () => Number.parseFloat((await cells.nth(1).textContent()) ?? ''))
}

async function sendCalls(): Promise<void> {
  await Promise.all([
    ...Array.from({ length: 10 }, () => room.call({})),
    ...Array.from({ length: 3 }, () => room.call({ audience: 'somebody-else' })),
    room.call(GOOD_WRITE),
  ])
}

describe('metrics', () => {
  it('show the requests, latencies, cache and store of the last seconds, and as a table', async () => {
    const { panel } = await room.open('metrics')
    await sendCalls()
    await panel.getByText('The same as a table').click()
    for (const row of [
      'Requests a second: accepted',
      'Requests a second: refused',
      'Latency of requests: median',
      'Latency of the store: 99th percentile',
      'Token cache: misses',
    ]) {
      await highest(panel, row).toBeGreaterThan(0)
    }
    const requests = chartOf(panel, 'requests')
    await expect.poll(() => hasColour(requests, '--accepted')).toBe(true)
    expect(await hasColour(requests, '--refused')).toBe(true)
    expect(await requests.getByRole('img').getAttribute('aria-label')).toMatch(
      /^Requests a second in the last five minutes\. Last second: accepted \d+, replayed \d+/,
    )
  })
})

describe('events', () => {
  it('can be filtered by channel, level, receiver and text', async () => {
    const { panel } = await room.open('events')
    await room.call({ receiver: 'orders-2', audience: 'somebody-else' })
    await room.call({ ...GOOD_WRITE, receiver: 'orders-1' })
    const rows = panel.locator('.events-row')
    await panel.getByLabel('Level').selectOption('warn')
    await rows.first().getByText('aud').waitFor()
    await expect.poll(() => panel.locator('.events-row:not([data-level="warn"])').count()).toBe(0)
    await panel.getByLabel('Receiver').selectOption('orders-1')
    await expect.poll(() => rows.filter({ hasText: 'orders-2' }).count()).toBe(0)
    await panel.getByLabel('Level').selectOption('')
    await panel.getByLabel('Channel').selectOption('idempotency')
    await rows.filter({ hasText: 'reserved' }).first().waitFor()
    await panel.getByLabel('Text').fill('completed-never')
    await panel.getByText('No such event yet.').waitFor()
  })

  it('stand still while somebody reads the details of one', async () => {
    const { panel } = await room.open('events')
    const newest = panel.locator('.events-row').first()
    await newest.getByRole('button').click()
    // The list may have moved until the click.
    const row = panel.locator('.events-row').filter({ has: panel.page().locator('pre') })
    const told = JSON.parse((await row.locator('pre').textContent()) ?? '')
    expect(told.number).toBe(Number(await row.getAttribute('data-event')))
    await sendCalls()
    await panel.getByText(/Paused; \d\d+ newer\./).waitFor()
    expect(JSON.parse((await row.locator('pre').textContent()) ?? '')).toEqual(told)
    await panel.getByRole('button', { name: 'Resume' }).click()
    await expect
      .poll(async () => Number(await newest.getAttribute('data-event')))
      .toBeGreaterThan(told.number)
  })
})

/** How long the page takes to answer a click, in milliseconds by its own clock. */
const timeOfClick = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    const button = document.querySelector<HTMLButtonElement>('#events .row button')
    const before = button?.textContent
    const begun = performance.now()
    button?.click()
    while (button?.textContent === before) await new Promise(requestAnimationFrame)
    return performance.now() - begun
  })

it('stays usable and exact at five hundred calls a second, and says that lists are samples', async () => {
  const { page, panel } = await room.open('events')
  const before = countOf(room.state().totals)
  await room.act('background-load', { callsPerSecond: 500 })
  const clicks: number[] = []
  const end = Date.now() + 4000
  // A busy machine takes longer for as many.
  while (Date.now() < end || clicks.length < 5) {
    clicks.push(await timeOfClick(page))
    await page.waitForTimeout(150)
  }
  await room.act('background-load', { callsPerSecond: 0 })
  // A busy machine holds up one or the other.
  expect(median(clicks)).toBeLessThan(CLICK_MS)
  // A busy machine sends fewer of them.
  expect(countOf(room.state().totals) - before).toBeGreaterThan(200)
  const { format } = new Intl.NumberFormat('en')
  for (const outcome of OUTCOMES) {
    const shown = page.locator('.total').filter({ hasText: outcome }).locator('dd')
    const isExact = async () => (await shown.textContent()) === format(room.state().totals[outcome])
    await expect.poll(isExact).toBe(true)
  }
  await panel.getByText(/A sample: [\d,]+ more were left out/).waitFor()
  await panel.getByRole('button', { name: /^Show all/ }).click()
  expect(await panel.locator('.events-row').count()).toBeLessThanOrEqual(500)
})

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Infinity

const countOf = (totals: Readonly<Record<string, number>>): number =>
  Object.values(totals).reduce((sum, count) => sum + count, 0)
