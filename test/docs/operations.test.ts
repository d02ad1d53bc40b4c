import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { POLICY } from '../../example-app/orders/policy.js'
import { type Running, run } from '../example-app/run.js'
import { serviceTokenBy } from '../support/core/core-client.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../support/core/identity-core/identity-core.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { knowToken } from '../support/secret-search/index.js'
import { until } from '../support/until.js'
import { exchangesIn, expectShown, inShell, logLinesIn, masked, placeCommand } from './console.js'
import { readDocument } from './documents.js'
import { sections } from './markdown.js'

const runBook = await readDocument('docs/operations.md')

let core: IdentityCore
let redis: RedisServer
let orders: Running
let ordersUrl: string
let folder: string
let log = ''
/** What stands in the run-book for what is so here. */
const here = new Map<string, string>()

beforeAll(async () => {
  ;[core, redis] = await Promise.all([
    startIdentityCore(),
    startRedis({ config: { appendonly: 'yes' } }),
  ])
  const addresses = { CORE_URL: core.url, ISSUER: core.issuer, REDIS_URL: redis.url }
  const env = { ...addresses, ORDERS_SERVE_ON_MS: '0' }
  orders = await run('orders/main.ts', [], env)
  orders.child.stdout?.on('data', (chunk) => {
    log += chunk
  })
  ordersUrl = /http:\S+/.exec(await orders.printed('(store: '))?.[0] ?? ''
  await until('orders is ready', async () => (await fetch(`${ordersUrl}/readyz`)).status === 200)
  folder = await placeCommand()
  await writeFile(
    join(folder, 'policy.json'),
    JSON.stringify({ ...POLICY, issuer: core.issuer, jwksUri: undefined }),
  )
  here.set('http://127.0.0.1:4001', ordersUrl)
  here.set('http://127.0.0.1:3568', core.issuer)
  here.set('orders-1:4711', `${hostname()}:${orders.child.pid}`)
})

afterAll(async () => {
  orders.child.kill('SIGKILL')
  await orders.finished
  await Promise.all([core.close(), redis.stop(), rm(folder, { recursive: true })])
})

const mint = (permission: string, aud = 'orders'): Promise<string> =>
  serviceTokenBy(core, 'billing', { permissions: [permission], aud })

async function keepToken(token: string): Promise<void> {
  knowToken(token)
  await writeFile(join(folder, 'token.txt'), token, { mode: 0o600 })
}

const read = (token: string): Promise<Response> =>
  fetch(`${ordersUrl}/orders/o-1`, { headers: { authorization: `Bearer ${token}` } })

async function orderGlass(key: string): Promise<number | undefined> {
  const token = await mint('orders:write')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ item: 'glass', quantity: 1 })
  const init = { method: 'POST', headers: { ...headers, 'idempotency-key': key }, body }
  return await fetch(`${ordersUrl}/orders`, init).then(
    ({ status }) => status,
    () => undefined,
  )
}

/** The first line that the receiver has logged for a reason. */
async function logged(reason: string): Promise<string> {
  const lines = (): string[] => log.split('\n').slice(0, -1)
  const find = (): string | undefined => lines().find((line) => line.includes(`"${reason}"`))
  await until(`orders logs ${reason}`, async () => find() !== undefined)
  return find() ?? ''
}

/** What has happened before somebody opens the run-book at a heading. */
const SCENES: Readonly<Record<string, () => Promise<void>>> = {
  async 'From a refused request to its cause'() {
    const token = await mint('orders:read', 'invoices')
    await keepToken(token)
    expect((await read(token)).status).toBe(401)
  },
  async 'A signing key was stolen'() {
    const stolen = await mint('orders:read')
    const kid = String(decodeProtectedHeader(stolen).kid)
    here.set('d-1767225600000', kid)
    await core.rotate()
    const keySet = await (await fetch(`${core.url}/.well-known/jwks.json`)).text()
    expect(keySet).toContain(kid)
  },
  async 'A token was stolen'() {
    await keepToken(await mint('orders:read'))
  },
  async 'A write whose outcome nobody knows'() {
    let record: string
    do {
      log = ''
      const key = randomUUID()
      await writeFile(join(folder, 'key.txt'), key, { mode: 0o600 })
      await until('glass is ordered', async () => (await orderGlass(key)) === 409)
      record = JSON.parse(await logged('outcome_unknown')).record
      // Such a record goes elsewhere in the command, as the run-book says.
    } while (record.startsWith('-'))
    here.set('hN3vY0b2m8QfZx1uT5sWk7Lr', record)
    await writeFile(join(folder, 'order.json'), '{"id":"o-17"}')
  },
  'Redis is lost': () => redis.kill(),
}

/** What `settle` shows is what the next command needs. */
function learnFence(told: string, printed: string): void {
  const [inRunBook, real] = [told, printed].map((text) => /--fence (\d+)/.exec(text)?.[1])
  if (inRunBook !== undefined && real !== undefined) here.set(inRunBook, real)
}

function asHere(text: string): string {
  let shown = text
  for (const [told, real] of here) shown = shown.replaceAll(told, real)
  return shown
}

it('prints what the run-book says, from its first command to its last', async () => {
  for (const { heading, text } of sections(runBook)) {
    await SCENES[heading]?.()
    for (const line of logLinesIn(text)) {
      const { reason } = JSON.parse(line) as { reason: string }
      expect(masked(await logged(reason)), heading).toBe(masked(line))
    }
    for (const { command, output } of exchangesIn(text)) {
      // What stands on standard error is read, too.
      const environment = { REDIS_URL: redis.url, USER: 'anna' }
      const printed = await inShell(`{ ${asHere(command)}\n} 2>&1`, folder, environment)
      learnFence(output, printed)
      // What is denied comes in no order.
      const isOpen = command === 'service-auth denylist'
      const inOrder = (lines: readonly string[]) => (isOpen ? lines.toSorted() : lines)
      expectShown({ command, output: asHere(output) }, printed, inOrder)
    }
  }
}, 180_000)

it('has a heading for each scene of this test', () => {
  const headings = sections(runBook).map(({ heading }) => heading)
  expect(headings).toEqual(expect.arrayContaining(Object.keys(SCENES)))
})

it.each([
  ['a\n...\nd\n', 'a\nb\ne\n'],
  ['a\nd\n', 'a\nb\nd\n'],
  ['9 tokens\n', '9 keys\n'],
])('notices that %j is not what is printed', (output, printed) => {
  expect(() => expectShown({ command: '', output }, printed)).toThrow()
  expect(() => expectShown({ command: '', output }, output)).not.toThrow()
})
