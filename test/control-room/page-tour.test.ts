import { afterAll, beforeAll, expect, it } from 'vitest'
import { useBrowser } from '../support/browser/chromium.js'
import { type StartedRoom, startRoom } from './start-room.js'

/** Some steps start servers. */
const STORY_LIMIT_MS = 150_000
const LONG = { timeout: STORY_LIMIT_MS + 30_000 }

const browser = useBrowser()
let started: StartedRoom

beforeAll(async () => {
  started = await startRoom()
})
afterAll(() => started?.close())

it('plays the story to its end: a step, then the rest, each as expected', LONG, async () => {
  const page = await browser.open(started.address)
  const tour = page.getByRole('region', { name: 'Tour' })
  const steps = tour.getByRole('list', { name: 'Steps of the tour' }).locator('> li')
  await steps.first().waitFor()
  const number = await steps.count()
  expect(number).toBe(started.room.state().tour.length)
  expect(number).toBeGreaterThan(10)

  await tour.getByRole('button', { name: 'Next step' }).click()
  await tour.getByText(`1 of ${number} played`).waitFor()
  expect(await steps.first().textContent()).toContain('as expected')
  expect(await steps.nth(1).textContent()).toContain('not played')

  await tour.getByRole('button', { name: 'Play all' }).click()
  await tour.getByText(`${number} of ${number} played`).waitFor({ timeout: STORY_LIMIT_MS })
  for (const step of await steps.all()) {
    const text = await step.textContent()
    expect(text).toContain('✓ as expected')
    expect(text).toMatch(/The caller got\s*\d{3}/)
  }
  expect(started.room.state().tour.map(({ state }) => state)).toEqual(
    Array(number).fill('as-expected'),
  )
  await tour.getByRole('button', { name: 'Begin again' }).click()
  await tour.getByText(`1 of ${number} played`).waitFor()
  expect(await steps.first().textContent()).toContain('✓ as expected')
})
