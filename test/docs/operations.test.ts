import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DenylistHealth } from 'express-service-auth'
import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { POLICY } from '../../example-app/orders/policy.js'
import { compileCommand } from '../cli/kit.js'
import { type Running, run } from '../example-app/run.js'
import { serviceTokenBy } from '../support/core/core-client.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../support/core/identity-core/identity-core.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { knowToken } from '../support/secret-search/index.js'
import { until } from '../support/until.js'
import { readDocument } from './blocks.js'
import { exchangesIn, logLinesIn, masked, shownLines } from './console.js'
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
  folder = await mkdtemp(join(tmpdir(), 'run-book-'))
  await writeFile(
    join(folder, 'policy.json'),
    JSON.stringify({ ...POLICY, issuer: core.issuer, jwksUri: undefined }),
  )
  await putCommandOnPath()
  here.set('http://127.0.0.1:4001', ordersUrl)
  here.set('http://127.0.0.1:3568', core.issuer)
  here.set('orders-1:4711', `${hostname()}:${orders.child.pid}`)
})

afterAll(async () => {
  orders.child.kill('SIGKILL')
  await orders.finished
  await Promise.all([core.close(), redis.stop(), rm(folder, { recursive: true })])
})

async function putCommandOnPath(): Promise<void> {
  const command = join(folder, 'bin', 'service-auth')
  const program = `exec '${process.execPath}' '${await compileCommand()}' "$@"`
  await mkdir(join(folder, 'bin'))
  await writeFile(command, `#!/bin/sh\n${program}\n`)
  await chmod(command, 0o755)
}

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
  async 'Redis is lost'() {
    await redis.kill()
    await until('a write fails', async () => (await orderGlass(randomUUID())) === 503)
    await until('the denylist is stale', async () => {
      const answer = await fetch(`${ordersUrl}/readyz`)
      const { denylists } = (await answer.json()) as { denylists: [DenylistHealth] }
      return denylists[0].state === 'stale' && denylists[0].lastError === 'network'
    })
  },
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

/** As somebody reads it: what stands on standard error, too. */
function inShell(command: string): Promise<string> {
  const path = `${join(folder, 'bin')}:${process.env['PATH']}`
  const env = { ...process.env, PATH: path, REDIS_URL: redis.url, USER: 'anna' }
  return new Promise((resolve) => {
    execFile('sh', ['-c', `{ ${command}\n} 2>&1`], { cwd: folder, env }, (_, stdout) => {
      resolve(stdout)
    })
  })
}

/** What is denied comes in no order. */
const inOrder = (command: string, lines: readonly string[]): readonly string[] =>
  command === 'service-auth denylist' ? lines.toSorted() : lines

it('prints what the run-book says, from its first command to its last', async () => {
  for (const { heading, text } of sections(runBook)) {
    await SCENES[heading]?.()
    for (const line of logLinesIn(text)) {
      const { reason } = JSON.parse(line) as { reason: string }
      expect(masked(await logged(reason)), heading).toBe(masked(line))
    }
    for (const { command, output } of exchangesIn(text)) {
      const printed = await inShell(asHere(command))
      learnFence(output, printed)
      const shown = asHere(output)
      const lines = inOrder(command, shownLines(shown, printed))
      expect(lines, command).toEqual(inOrder(command, masked(shown).split('\n')))
    }
  }
}, 180_000)

it('has a heading for each scene of this test', () => {
  const headings = sections(runBook).map(({ heading }) => heading)
  expect(headings).toEqual(expect.arrayContaining(Object.keys(SCENES)))
})

it('notices what the command does not print', () => {
  const [told] = exchangesIn('```console\n$ a \\\n  b\n12 keys\n```\n')
  expect(told).toEqual({ command: 'a \\\n  b', output: '12 keys\n' })
  expect(masked('9  keys')).toBe(masked('12 keys'))
  expect(masked('9 keys')).not.toBe(masked('9 tokens'))
  expect(shownLines('a\n...\nd\n', 'a\nb\nc\nd\n')).toEqual(['a', '...', 'd'])
  expect(shownLines('a\n...\n', 'a\nb\n')).toEqual(['a', '...'])
  expect(shownLines('a\n...\nd\n', 'a\nb\ne\n')).toEqual(['a', '...', 'b', 'e'])
  expect(shownLines('a\nd\n', 'a\nb\nd\n')).toEqual(['a', 'b', 'd'])
})
