import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { networkInterfaces } from 'node:os'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REBOUND_HOST, useBrowser } from '../support/browser/chromium.js'
import { rawRequest } from '../support/network/raw-exchange.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { type Running, run } from './run.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const LONG = { timeout: 180_000 }

let redis: RedisServer
let started: Running
/** Of the page, with the key. */
let address: string
const browser = useBrowser()

beforeAll(async () => {
  redis = await startRedis()
  started = await run('start.ts', [], { REDIS_URL: redis.url })
  const printed = await started.printed('to yourself: http')
  address = /to yourself: (\S+)/.exec(`${printed}${await started.printed('/\n')}`)?.[1] ?? ''
})
afterAll(async () => {
  started.child.kill('SIGTERM')
  const { code, stderr } = await started.finished
  await redis.stop()
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

interface Call {
  readonly route: 'read' | 'write' | 'track'
  readonly caller?: string
  readonly hostile?: string
}

/** Composes a call in the page, sends it, and reads both views of it. */
async function send(page: Page, { route, caller = 'billing', hostile = '' }: Call) {
  await page.locator(`select[name=hostile] option[value=${JSON.stringify(hostile)}]`).waitFor({
    state: 'attached',
  })
  await page.locator('select[name=caller]').selectOption(caller)
  await page.locator('select[name=route]').selectOption(route)
  await page.locator('select[name=hostile]').selectOption(hostile)
  const answered = page.waitForResponse((response) => response.url().endsWith('/call'))
  await page.getByRole('button', { name: 'Send' }).click()
  await (await answered).finished()
  await page.locator('#request:not(:empty)').waitFor()
  await page.getByRole('button', { name: 'Send', disabled: false }).waitFor()
  const textOf = async (id: string) => (await page.locator(`#${id}`).textContent()) ?? ''
  const checks = await page
    .locator('#checks li')
    .evaluateAll((items) => items.map((item) => [item.textContent, item.dataset['state']]))
  return {
    status: Number((await textOf('answer')).slice(0, 3)),
    answer: await textOf('answer'),
    reason: await textOf('reason'),
    token: await textOf('token'),
    failed: checks.find(([, state]) => state === 'failed')?.[0],
    checks,
  }
}

async function press(page: Page, name: string | RegExp): Promise<string> {
  const told = page.waitForResponse((response) => response.url().includes('/do/'))
  await page.getByRole('button', { name }).click()
  return ((await (await told).json()) as { told: string }).told
}

/** What axe-core finds. The page's policy does not hold for what a debugger evaluates. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const { violations } = (await page.evaluate(
    "axe.run({ resultTypes: ['violations'] })",
  )) as AxeResults
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

describe('a call', () => {
  it('is shown from both sides, with its token', async () => {
    const page = await browser.open(address, { viewport: { width: 1280, height: 900 } })
    const written = await send(page, { route: 'write' })
    expect(written).toMatchObject({ status: 201, reason: 'accepted', failed: undefined })
    expect(written.checks).toContainEqual(['Handler', 'passed'])
    expect(written.token).toContain('"aud": "orders"')
    expect((await send(page, { route: 'write' })).answer).toContain('idempotent-replayed: true')
    expect(await send(page, { route: 'write', caller: 'reporting' })).toMatchObject({
      status: 403,
      reason: 'refused: permission_missing',
      failed: 'Permissions: permission_missing',
    })
    expect(await send(page, { route: 'track' })).toMatchObject({ status: 200 })
    expect(await send(page, { route: 'read', caller: 'stranger' })).toMatchObject({
      status: 403,
      failed: 'Caller approved: caller_not_approved',
    })
  })

  it('with a hostile token of the kit is refused by one check, each of them', LONG, async () => {
    const { hostile } = (await (await fetch(`${address}state`)).json()) as { hostile: string[] }
    expect(hostile.length).toBeGreaterThan(50)
    for (const name of hostile) {
      const order = { caller: 'billing', route: 'read', permissions: [], key: '', hostile: name }
      const response = await fetch(`${address}call`, {
        method: 'POST',
        headers: { origin: new URL(address).origin, 'content-type': 'application/json' },
        body: JSON.stringify(order),
      })
      const { operator } = (await response.json()) as { operator: { checks: { state: string }[] } }
      const failed = operator.checks.filter(({ state }) => state === 'failed')
      expect(failed, name).toHaveLength(1)
    }
    const page = await browser.open(address)
    const unsigned = await send(page, { route: 'read', hostile: String(hostile[20]) })
    expect(unsigned.status).toBe(401)
    expect(await page.locator('#expected').textContent()).toContain('The kit expects 401')
  })
})

describe('a button', () => {
  it('rotates the key, and stops and starts the core', async () => {
    const page = await browser.open(address, { mayComplainOf: /status of 503/ })
    expect(await press(page, 'Rotate the key')).toMatch(/^The core signs with d-\d+ from now on/)
    expect((await send(page, { route: 'read' })).status).toBe(200)
    expect(await press(page, 'Stop the core')).toContain('The core is down')
    await page.getByRole('button', { name: 'Start the core' }).waitFor()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('no service token: core_unreachable').waitFor()
    expect(await press(page, 'Start the core')).toBe('The core is up.')
    expect((await send(page, { route: 'read' })).status).toBe(200)
  })

  it('kills a receiver in a write, whose retry gets a 409', async () => {
    const page = await browser.open(address)
    await page.locator('[data-action=kill]:enabled').waitFor()
    expect(await press(page, 'Kill a receiver in a write')).toContain('was killed in the write')
    expect(await send(page, { route: 'write' })).toMatchObject({
      status: 409,
      failed: 'Idempotency-Key: request_in_progress',
    })
  })
})

it.each([
  [1280, 'light'],
  [390, 'dark'],
] as const)(
  'axe-core finds nothing at %i pixels, %s, and all of it fits',
  async (width, scheme) => {
    const viewport = { width, height: 844 }
    const page = await browser.open(address, { viewport, colorScheme: scheme })
    await send(page, { route: 'read', caller: 'stranger' })
    expect(await findings(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
  },
)

describe('whoever is not the page', () => {
  const FOREIGN = [403, 'Not for you.']

  /** The status and the text of the answer to a request that the page would send, with changes. */
  async function ask(change: { host?: string; path?: string; origin?: string; post?: boolean }) {
    const { host: own, port, pathname } = new URL(address)
    const { host = own, path = pathname, post = false, origin } = change
    const answer = await rawRequest(Number(port), {
      method: post ? 'POST' : 'GET',
      path: post ? `${path}do/rotate` : path,
      host,
      headers: [
        ...(origin === undefined ? [] : [`Origin: ${origin}`]),
        ...(post ? ['Content-Type: application/json', 'Content-Length: 2'] : []),
      ],
      ...(post && { body: '{}' }),
    })
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    return [Number(head.split(' ')[1]), body.slice(0, FOREIGN[1]?.toString().length)]
  }

  it.each(['evil.example', '127.0.0.1', '127.0.0.1:PORT.evil.example', ''])(
    'is refused with Host %j',
    async (name) => {
      const host = name.replace('PORT', new URL(address).port)
      expect(await ask({ host })).toEqual(FOREIGN)
      expect(await ask({ host, post: true, origin: `http://${host}` })).toEqual(FOREIGN)
    },
  )

  it('is refused with another Origin, and without one where something is done', async () => {
    for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1:1']) {
      expect(await ask({ origin })).toEqual(FOREIGN)
      expect(await ask({ post: true, origin })).toEqual(FOREIGN)
    }
    expect(await ask({ post: true })).toEqual(FOREIGN)
  })

  it('is refused without the key, and with a wrong one', async () => {
    const { pathname, origin } = new URL(address)
    for (const path of ['/', '/page.js', `${pathname.slice(0, -2)}/`, `/x${pathname.slice(1)}`]) {
      expect(await ask({ path })).toEqual(FOREIGN)
      expect(await ask({ path, post: true, origin })).toEqual(FOREIGN)
    }
  })

  it('cannot reach it under another name, or from another machine', async () => {
    const page = await browser.open(address.replace('127.0.0.1', REBOUND_HOST), {
      mayComplainOf: /403|Cross-Origin-Opener-Policy/,
    })
    expect(await page.textContent('body')).toBe(FOREIGN[1])
    const { port } = new URL(address)
    const others = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
    const foreign = others.filter(({ internal, family }) => !internal && family === 'IPv4')
    for (const host of ['127.0.0.2', ...foreign.map((one) => one.address)]) {
      await expect(fetch(`http://${host}:${port}/`)).rejects.toThrow('fetch failed')
    }
  })

  it('learns neither the address nor the page', async () => {
    const { headers } = await fetch(address)
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'; require-trusted-types/,
    )
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-powered-by')).toBeNull()
  })
})
