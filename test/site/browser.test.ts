import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useBrowser } from '../support/browser/chromium.js'
import { serve } from '../support/receiver/serve.js'
import { builtPages, siteServer } from './serve-site.js'

const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' } as const
const DESK = { viewport: { width: 1280, height: 900 }, colorScheme: 'light' } as const
const SIZES = Object.entries({ phone: PHONE, desk: DESK })

let site: Awaited<ReturnType<typeof serve>>

beforeAll(async () => {
  site = await serve(siteServer)
})
afterAll(() => site?.close())

// It fails a test when a page asks another server for something, or complains on its console.
const browser = useBrowser()

/** The row of a reason, once it is in view, clear of the bars at the top. */
async function readRow(page: Page, reason: string): Promise<string | null> {
  const cell = page.locator(`td[id="${reason}"]`)
  await cell.waitFor()
  // The page may still be scrolling.
  await expect
    .poll(async () => (await cell.boundingBox())?.y, { timeout: 5000 })
    .toSatisfy((top: number) => top > BARS_PIXELS && top < HALF_A_PHONE_PIXELS)
  return cell.locator('..').textContent()
}

const BARS_PIXELS = 64
const HALF_A_PHONE_PIXELS = 422

describe.each(SIZES)('the site on a %s', (_, size) => {
  it('says what to do about outcome_unknown at its own address', async () => {
    const page = await browser.open(`${site.url}/docs/operations.html#outcome_unknown`, size)
    expect(await readRow(page, 'outcome_unknown')).toMatch(/settle its record/)
  })

  it('finds the chapter of a reason by its search, first of all', async () => {
    const page = await browser.open(`${site.url}/`, size)
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click()
    await page.getByRole('searchbox').fill('outcome_unknown')
    const first = page.locator('.results a.result').first()
    await first.waitFor()
    await first.click()
    await page.locator('td[id="outcome_unknown"]').waitFor()
  })

  it('begins with what it is for, a quick start and a picture', async () => {
    const page = await browser.open(`${site.url}/`, size)
    const headings = await page.locator('.vp-doc h2').allTextContents()
    expect(headings.map((text) => text.replace(/\s*\u200b$/, ''))).toEqual([
      'What it is for',
      'Quick start',
      'How a request is decided',
    ])
    const code = await page.locator('.vp-doc pre').allTextContents()
    expect(code[0]).toContain('createTestIssuer()')
    const width = await page.evaluate(`{
      const picture = document.querySelector('.vp-doc img')
      picture.decode().then(() => picture.naturalWidth)
    }`)
    expect(width).toBeGreaterThan(300)
  })

  it('shows the benchmarks as three charts, and the figures on demand', async () => {
    const page = await browser.open(`${site.url}/bench/results.html`, size)
    const charts = page.locator('.bar-chart')
    expect(await charts.count()).toBe(3)
    expect(await charts.first().textContent()).toMatch(/^reads, few tokens\s*serviceAuth/)
    const table = page.locator('table').first()
    expect(await table.isVisible()).toBe(false)
    await page.getByText('All figures').click()
    expect(await table.isVisible()).toBe(true)
  })
})

it('answers at /reference/ with what can be imported', async () => {
  const page = await browser.open(`${site.url}/reference/`, DESK)
  await page.getByRole('main').getByRole('link', { name: 'express-service-auth/postgres' }).click()
  await page.getByRole('heading', { level: 1, name: 'express-service-auth/postgres' }).waitFor()
})

/** What can be seen without scripts, which would take most of the time. */
interface Look {
  readonly excess: number
  readonly tables: readonly string[]
  readonly ids: readonly string[]
  /** Addresses on this site. */
  readonly links: readonly string[]
}

const LOOK = `({
  excess: document.documentElement.scrollWidth - innerWidth,
  tables: [...document.querySelectorAll('.vp-doc table')]
    .filter((table) => table.getBoundingClientRect().right > table.closest('.vp-doc').getBoundingClientRect().right + 1)
    .map((table) => table.innerText.slice(0, 60)),
  ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
  links: [...document.links].map(({ href }) => href).filter((href) => href.startsWith(location.origin)),
})`

describe.each(SIZES)('every page on a %s', (_, size) => {
  const looks = new Map<string, Look>()

  beforeAll(async () => {
    const page = await browser.open(`${site.url}/`, { ...size, javaScriptEnabled: false })
    for (const path of await builtPages()) {
      await page.goto(`${site.url}${path}`)
      await page.evaluate(
        'document.querySelectorAll("details").forEach((one) => { one.open = true })',
      )
      looks.set(path, await page.evaluate(LOOK))
    }
  })

  it('fits, and so does each of its tables', () => {
    expect(looks.size).toBeGreaterThan(50)
    const faults = [...looks].filter(([, { excess, tables }]) => excess > 0 || tables.length > 0)
    expect(faults.map(([path, { excess, tables }]) => ({ path, excess, tables }))).toEqual([])
  })

  it('has no link to a place that is not there', () => {
    const dead = [...looks].flatMap(([path, { links }]) =>
      links
        .filter((link) => {
          const { pathname, hash } = new URL(link)
          const target = looks.get(pathname.endsWith('/') ? `${pathname}index.html` : pathname)
          return !target || (hash && !target.ids.includes(decodeURIComponent(hash.slice(1))))
        })
        .map((link) => `${path}: ${link}`),
    )
    expect(dead).toEqual([])
  })
})
