import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useBrowser } from '../support/browser/chromium.js'
import { callIsOver, pressPreset, readViews } from './compose-page.js'
import { type StartedRoom, startRoom } from './start-room.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const browser = useBrowser()
let started: StartedRoom

beforeAll(async () => {
  started = await startRoom()
  await started.room.act('tour-step', { index: 0 })
})
afterAll(() => started?.close())

/** What axe-core finds. The page's policy does not hold for what a debugger evaluates. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const { violations } = (await page.evaluate(
    "axe.run({ resultTypes: ['violations'] })",
  )) as AxeResults
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

it.each([
  [1280, 'light'],
  [390, 'dark'],
] as const)('axe-core finds nothing at %i pixels, %s', async (width, colorScheme) => {
  const page = await browser.open(started.address, {
    viewport: { width, height: 844 },
    colorScheme,
  })
  await pressPreset(page, 'A tampered token', 1)
  await page.getByRole('button', { name: 'A good write' }).click()
  await callIsOver(page, 2)
  await page.getByText('✓ as expected').waitFor()
  await page.getByRole('combobox', { name: 'What is done to the token' }).click()
  await page.keyboard.type('alg none')
  expect(await findings(page)).toEqual([])
})

it('axe-core finds nothing before anything was done', async () => {
  const page = await browser.open(started.address)
  await page.getByText('hostile tokens of the package’s catalogue').waitFor()
  expect(await findings(page)).toEqual([])
})

const MAX_TABS = 60

/** Presses Tab until the element in focus has this text, as somebody without a mouse would. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let tabs = 0; tabs < MAX_TABS; tabs += 1) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement
      const { outlineStyle, outlineWidth } = getComputedStyle(element)
      return {
        text: element.textContent ?? '',
        isSeen: outlineStyle !== 'none' && outlineWidth !== '0px',
      }
    })
    expect(focused.isSeen, `the focus on "${focused.text}" is seen`).toBe(true)
    if (focused.text.startsWith(text)) return
  }
  throw new Error(`Tab does not lead to "${text}"`)
}

it('lets a newcomer with a keyboard send a call and read its reason', async () => {
  const page = await browser.open(started.address)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter') // The skip link.
  await tabTo(page, 'A tampered token')
  await page.keyboard.press('Enter')
  await callIsOver(page, 1)
  await tabTo(page, 'See both views')
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.activeElement?.id === 'views')
  const reason = page.getByText('signature_invalid', { exact: true })
  await reason.waitFor()
  expect((await readViews(page)).failedStep).toBe('Signature')
})

it('lets a keyboard find a hostile token, or none', async () => {
  const page = await browser.open(started.address)
  const box = page.getByRole('combobox', { name: 'What is done to the token' })
  await box.focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('PageDown')
  const active = await box.getAttribute('aria-activedescendant')
  expect(await page.locator(`[id="${active}"]`).getAttribute('aria-selected')).toBe('true')
  await page.keyboard.press('Escape')
  expect(await box.inputValue()).toBe('nothing: send the genuine token')
  await page.keyboard.type('stranger signature')
  expect(await page.getByRole('option').first().textContent()).toContain('stranger')
  await page.keyboard.press('Enter')
  expect(await box.inputValue()).toContain('stranger')
  await page.keyboard.type('no such words')
  await page.getByText('No case has these words.').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Home')
  for (let pages = 0; pages < MAX_TABS; pages += 1) await page.keyboard.press('PageUp')
  await page.keyboard.press('Enter')
  expect(await box.inputValue()).toBe('nothing: send the genuine token')
})
