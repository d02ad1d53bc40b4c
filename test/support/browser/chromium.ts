import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { findProgram } from '../process/find-program.js'

/** A foreign host name that resolves to this machine, as after DNS rebinding. */
export const REBOUND_HOST = 'rebound.example'

/** Makes the browser send no requests of its own, such as for updates. */
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

/** Returns the path of a Chromium or Chrome; root installs Chromium if there is none. */
const findChromium = (): string =>
  findProgram({
    variable: 'CHROMIUM',
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium',
    remedy:
      'Install it with `apt-get install -y chromium` (Debian), or name the binary of a Chromium or ' +
      'Chrome in the environment variable CHROMIUM.',
  })

/** The time limit of each wait of a page. */
const WAIT_TIMEOUT_MS = 20_000

export interface OpenOptions extends BrowserContextOptions {
  /** The errors and warnings that the page's console may show; any other fails the test. */
  readonly mayComplainOf?: RegExp
}

export interface TestBrowser {
  /** Opens an address in a new browser context, which is closed after the test. */
  open(address: string, options?: OpenOptions): Promise<Page>
}

/**
 * Starts a Chromium for the tests of a file, which run one after another. A test fails if one of its pages
 * has thrown, has sent a request to another origin, or has logged an error or a warning: a browser logs failed
 * requests, and what a content security policy forbids.
 */
export function useBrowser(): TestBrowser {
  let browser: Browser | undefined
  const faults: string[] = []

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: findChromium(), args: ARGUMENTS })
  })
  afterEach(async () => {
    await Promise.all(browser?.contexts().map((context) => context.close()) ?? [])
    expect(faults.splice(0)).toEqual([])
  })
  afterAll(() => browser?.close())

  return {
    async open(address, options = {}) {
      if (!browser) throw new Error('there is no browser before the tests begin')
      const context = await browser.newContext(options)
      context.setDefaultTimeout(WAIT_TIMEOUT_MS)
      const page = await context.newPage()
      watchConsole(page, options.mayComplainOf, faults)
      watchRequests(page, new URL(address).origin, faults)
      await page.goto(address)
      return page
    },
  }
}

function watchConsole(page: Page, mayComplainOf: RegExp | undefined, faults: string[]): void {
  page.on('console', (message) => {
    const isComplaint = message.type() === 'error' || message.type() === 'warning'
    if (!isComplaint || mayComplainOf?.test(message.text())) return
    faults.push(`console: ${message.text()} at ${message.location().url}`)
  })
  page.on('pageerror', (error) => faults.push(`thrown: ${error.stack ?? error.message}`))
}

function watchRequests(page: Page, origin: string, faults: string[]): void {
  page.on('request', (request) => {
    const url = request.url()
    if (url.startsWith(`${origin}/`) || url.startsWith('data:')) return
    faults.push(`asked elsewhere: ${url}`)
  })
}
