import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useBrowser } from '../support/browser/chromium.js'
import { serve } from '../support/receiver/serve.js'
import { builtPages, siteServer } from './serve-site.js'

const SIZES = {
  'a telephone': { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
  'a desk': { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
} as const

let site: Awaited<ReturnType<typeof serve>>

beforeAll(async () => {
  await builtPages()
  site = await serve(siteServer)
})
afterAll(() => site?.close())

// It fails a test when a page asks another server for something, or complains on its console.
const browser = useBrowser()

/** What stands below a heading, once it is in sight, clear of the bars at the top. */
async function readBelow(page: Page, anchor: string): Promise<string> {
  const heading = page.locator(`[id="${anchor}"]`)
  await heading.waitFor()
  // The page may still be scrolling.
  await expect
    .poll(async () => (await heading.boundingBox())?.y, { timeout: 5000 })
    .toSatisfy((top: number) => top > BARS_PIXELS && top < HALF_A_TELEPHONE_PIXELS)
  const below = page.locator(`[id="${anchor}"] ~ p`)
  return `${await below.nth(0).textContent()}\n${await below.nth(1).textContent()}`
}

const BARS_PIXELS = 64
const HALF_A_TELEPHONE_PIXELS = 422

describe.each(Object.entries(SIZES))('the site on %s', (_, size) => {
  it('tells what to do about outcome_unknown in two clicks', async () => {
    const page = await browser.open(`${site.url}/`, size)
    await page.locator('.VPFeature', { hasText: 'Why was a call refused?' }).click()
    await page.getByRole('link', { name: 'outcome_unknown', exact: true }).first().click()
    expect(await readBelow(page, 'outcome_unknown')).toContain('Cause or action: settle its record')
  })

  it('finds it by its search, first of all', async () => {
    const page = await browser.open(`${site.url}/`, size)
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click()
    await page.getByRole('searchbox').fill('outcome_unknown')
    const first = page.locator('.results a.result').first()
    await first.waitFor()
    await first.click()
    expect(await readBelow(page, 'outcome_unknown')).toContain('Cause or action: settle its record')
  })
})

describe('every page of the site', () => {
  it('fits the width of a telephone', async () => {
    // What it is laid out from is in the HTML; the scripts would take most of the time.
    const size = { ...SIZES['a telephone'], javaScriptEnabled: false }
    const page = await browser.open(`${site.url}/`, size)
    const tooWide: string[] = []
    for (const path of ['/', ...(await builtPages())]) {
      await page.goto(`${site.url}${path}`)
      const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      if (Number(excess) > 0) tooWide.push(path)
    }
    expect(tooWide).toEqual([])
  })
})
