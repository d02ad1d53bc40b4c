import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Response,
} from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { findChromium } from './chromium-binary.js'

/** A name of somebody else that leads to this machine, as after DNS rebinding. */
export const REBOUND_HOST = 'rebound.example'

/** A browser that asks nobody for anything but what a test opens. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--host-resolver-rules=MAP ${REBOUND_HOST} 127.0.0.1`,
]

/** A page that waits this long for something waits for nothing. */
const PATIENCE_MS = 20_000

export interface OpenOptions extends BrowserContextOptions {
  /** What the page's console may complain of; anything else fails the test. */
  readonly mayComplainOf?: RegExp
  /** Of a page that is not ours. */
  readonly mayAskElsewhere?: boolean
}

export interface TestBrowser {
  /** Opens an address in a profile of its own, which ends with the test. */
  open(address: string, options?: OpenOptions): Promise<Page>
}

/**
 * A Chromium for the tests of a file, which run one after another. A test fails when one of its pages
 * has complained on its console, as browsers do of what a content security policy forbids, has thrown,
 * or has asked another server for something.
 */
export function useBrowser(): TestBrowser {
  let browser: Browser | undefined
  const faults: string[] = []
  const texts: Promise<unknown>[] = []

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: findChromium(), args: ARGUMENTS })
  })
  afterEach(async () => {
    // A text is gone with its page.
    await Promise.all(texts.splice(0))
    await Promise.all(browser?.contexts().map((context) => context.close()) ?? [])
    expect(faults.splice(0)).toEqual([])
  })
  afterAll(() => browser?.close())

  return {
    async open(address, options = {}) {
      if (!browser) throw new Error('there is no browser before the tests begin')
      const context = await browser.newContext(options)
      context.setDefaultTimeout(PATIENCE_MS)
      const page = await context.newPage()
      watchConsole(page, options.mayComplainOf, faults)
      page.on('response', (response) => {
        if (isUnexpected(response, options.mayComplainOf)) {
          texts.push(describe(response).then((text) => faults.push(text)))
        }
      })
      if (!options.mayAskElsewhere) watchRequests(page, new URL(address).origin, faults)
      await page.goto(address)
      return page
    },
  }
}

function watchConsole(page: Page, mayComplainOf: RegExp | undefined, faults: string[]): void {
  page.on('console', (message) => {
    const isComplaint = message.type() === 'error' || message.type() === 'warning'
    if (isComplaint && !mayComplainOf?.test(message.text()))
      faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`thrown: ${error.stack ?? error.message}`))
}

/** The console says no more than the status of such an answer. */
const isUnexpected = (response: Response, mayComplainOf: RegExp | undefined): boolean =>
  response.status() >= 400 && !mayComplainOf?.test(`status of ${response.status()}`)

async function describe(response: Response): Promise<string> {
  const request = response.request()
  const text = await response.text().catch(() => 'without a text')
  const asked = `${request.method()} ${request.url()} ${request.postData() ?? ''}`
  return `answered ${response.status()} ${text} to ${asked}`
}

function watchRequests(page: Page, origin: string, faults: string[]): void {
  page.on('request', (request) => {
    const url = request.url()
    if (url.startsWith(`${origin}/`) || url.startsWith('data:')) return
    faults.push(`asked elsewhere: ${url}`)
  })
}
