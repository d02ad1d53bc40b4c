import { readdir } from 'node:fs/promises'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../docs/documents.js'
import { useBrowser } from '../support/browser/chromium.js'
import { serve } from '../support/receiver/serve.js'

const BUILT = `${ROOT}site/dist`
const DESK = { viewport: { width: 1280, height: 900 } }
const SIZES = Object.entries({ phone: { viewport: { width: 390, height: 844 } }, desk: DESK })

let site: Awaited<ReturnType<typeof serve>>

beforeAll(async () => {
  site = await serve(express().use(express.static(BUILT)))
})
afterAll(() => site?.close())

// It fails a test when a page asks another server for something, or complains on its console.
const browser = useBrowser()

/** What can be seen without scripts, which would take most of the time. */
interface Look {
  readonly excess: number
  readonly ids: readonly string[]
  readonly links: readonly string[]
}

const LOOK = `({
  excess: document.documentElement.scrollWidth - innerWidth,
  ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
  links: [...document.querySelectorAll('.vp-doc a')]
    .map(({ href }) => href)
    .filter((href) => href.startsWith(location.origin)),
})`

describe.each(SIZES)('every page on a %s', (_, size) => {
  const looks = new Map<string, Look>()

  beforeAll(async () => {
    const page = await browser.open(`${site.url}/`, { ...size, javaScriptEnabled: false })
    const files = await readdir(BUILT, { recursive: true })
    for (const file of files.filter((one) => one.endsWith('.html') && one !== '404.html')) {
      await page.goto(`${site.url}/${file}`)
      looks.set(`/${file}`, await page.evaluate(LOOK))
    }
  })

  it('fits', () => {
    expect(looks.size).toBeGreaterThan(30)
    expect([...looks].filter(([, { excess }]) => excess > 0).map(([path]) => path)).toEqual([])
  })

  it('has no link to an anchor that is not there', () => {
    const dead = [...looks].flatMap(([path, { links }]) =>
      links
        .filter((link) => {
          const { pathname, hash } = new URL(link)
          const target = looks.get(pathname.endsWith('/') ? `${pathname}index.html` : pathname)
          return target && hash && !target.ids.includes(decodeURIComponent(hash.slice(1)))
        })
        .map((link) => `${path}: ${link}`),
    )
    expect(dead).toEqual([])
  })
})

it('finds a reason by its search', async () => {
  const page = await browser.open(`${site.url}/`, DESK)
  await page
    .getByRole('button', { name: /search/i })
    .first()
    .click()
  await page.getByRole('searchbox').fill('outcome_unknown')
  await page.locator('.results a.result').first().click()
  await page.getByText('outcome_unknown').first().waitFor()
})
