import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { freePort } from '../support/network/free-port.js'
import { FREE_PORTS, ROOT, run } from './run.js'

const NOBODY = 'http://127.0.0.1:2'

let taken: RunningServer
let takenPort: string
let directory: string

beforeAll(async () => {
  taken = await listen((_, response) => response.writeHead(404).end(), 0)
  takenPort = new URL(taken.url).port
  directory = await mkdtemp(join(tmpdir(), 'example-app-'))
  await writeFile(join(directory, 'damaged.json'), '-----BEGIN PRIVATE KEY-----')
})
afterAll(async () => {
  await taken.close()
  await rm(directory, { recursive: true })
})

/** Runs a service that must not start, and returns its only line. */
async function complaint(
  file: string,
  env: Record<string, string>,
  args: string[] = [],
): Promise<string> {
  const { code, stdout, stderr } = await (await run(file, args, env)).finished
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({
    code: 1,
    stdout: '',
    lines: 2,
  })
  return stderr.trimEnd()
}

it.each(['identity-core', 'issuer', 'orders', 'billing'])(
  'the story ends with one line when the port of %s is in use',
  async (service) => {
    const name = `${service.replace('-', '_').toUpperCase()}_PORT`
    expect(await complaint('start.ts', { [name]: takenPort }, ['--once'])).toBe(
      `start: port ${takenPort} is in use on 127.0.0.1; set ${name} to another one`,
    )
  },
)

it('the core ends with one line when its port is in use or its keys file is damaged', async () => {
  const keysFile = join(directory, 'keys.json')
  const inUse = { IDENTITY_CORE_PORT: takenPort, IDENTITY_CORE_KEYS_FILE: keysFile }
  expect(await complaint('identity-core/main.ts', inUse)).toBe(
    `identity-core: port ${takenPort} is in use on 127.0.0.1; set IDENTITY_CORE_PORT to another one`,
  )
  const damaged = join(directory, 'damaged.json')
  const complained = await complaint('identity-core/main.ts', { IDENTITY_CORE_KEYS_FILE: damaged })
  expect(complained).toBe(
    `identity-core: the keys file ${damaged} is damaged; restore it, or move it away to start with new keys`,
  )
})

it('orders ends with one line, which quotes nothing, when the Redis address is malformed', async () => {
  const env = { REDIS_URL: 'redis://:a-password@localhost:port' }
  expect(await complaint('orders/main.ts', env)).toBe(
    'orders: REDIS_URL must be an address such as redis://localhost:6379/0',
  )
})

it('the story ends with one line when Redis does not answer', async () => {
  const env = { REDIS_URL: 'redis://:a-password@127.0.0.1:1' }
  const complained = await complaint('start.ts', env, ['--once'])
  expect(complained).toMatch(/^start: Redis at 127\.0\.0\.1:1 cannot serve: /)
  expect(complained).not.toContain('a-password')
})

it('orders ends with one line when its port is in use', async () => {
  // Before Redis is tried, which does not answer either.
  const env = { ORDERS_PORT: takenPort, REDIS_URL: 'redis://127.0.0.1:1' }
  expect(await complaint('orders/main.ts', env)).toBe(
    `orders: port ${takenPort} is in use on 127.0.0.1; set ORDERS_PORT to another one`,
  )
})

it('billing ends with one line when its port is in use, before it calls the core', async () => {
  const env = { BILLING_PORT: takenPort, IDENTITY_CORE_URL: NOBODY }
  expect(await complaint('billing/main.ts', env)).toBe(
    `billing: port ${takenPort} is in use on 127.0.0.1; set BILLING_PORT to another one`,
  )
})

it('npm start ends with one line when the port of its page is in use, before it builds', async () => {
  // Without npm on the path, a build would end with another line.
  const env = { CONTROL_ROOM_PORT: takenPort, PATH: directory }
  expect(await complaint('npm-start.ts', env)).toBe(
    `start: port ${takenPort} is in use on 127.0.0.1; set CONTROL_ROOM_PORT to another one`,
  )
})

it('npm start ends with one line when two variables name the same port', async () => {
  const port = String(await freePort())
  const env = { ORDERS_PORT: port, BILLING_PORT: port }
  expect(await complaint('npm-start.ts', env, ['--once'])).toBe(
    `start: port ${port} is in use on 127.0.0.1; set BILLING_PORT to another one`,
  )
})

it('npm start says within two seconds what it is doing, before it builds', {
  retry: 2,
}, async () => {
  // Builds nothing.
  await writeFile(join(directory, 'npm'), '#!/bin/sh\nexit 3\n', { mode: 0o755 })
  const npm = await promisify(execFile)('sh', ['-c', 'command -v npm'])
  const args = ['start', '--silent', '--', '--once']
  const PATH = `${directory}:${process.env['PATH']}`
  const begun = performance.now()
  const child = spawn(npm.stdout.trim(), args, {
    cwd: ROOT,
    env: { ...process.env, ...FREE_PORTS, PATH },
  })
  const [line] = await once(child.stdout, 'data')
  expect(performance.now() - begun).toBeLessThan(2000)
  expect(String(line)).toMatch(/^Builds the package and the control room: about 10 seconds\.\n/)
  expect(await once(child, 'exit')).toEqual([3, null])
})

it('the migration story ends with one line when the port of the core is in use', async () => {
  const env = { IDENTITY_CORE_PORT: takenPort }
  expect(await complaint('npm-start.ts', env, ['migration', '--once'])).toBe(
    `start: port ${takenPort} is in use on 127.0.0.1; set IDENTITY_CORE_PORT to another one`,
  )
})

it('billing ends with one line when the core does not answer, or is none', async () => {
  expect(await complaint('billing/main.ts', { IDENTITY_CORE_URL: NOBODY })).toBe(
    `billing: no service token: core_unreachable, ECONNREFUSED (the identity core is ${NOBODY})`,
  )
  expect(await complaint('billing/main.ts', { IDENTITY_CORE_URL: taken.url })).toBe(
    `billing: no service token: core_rejected, status 404 (the identity core is ${taken.url})`,
  )
})

it.each([
  ['start.ts', { CONTROL_ROOM_PORT: '70000' }, 'start: CONTROL_ROOM_PORT must be'],
  ['orders/main.ts', { ORDERS_PORT: '70000' }, 'orders: ORDERS_PORT must be'],
  ['billing/main.ts', { ORDERS_URL: 'http://a/b' }, 'billing: ORDERS_URL must be'],
  ['billing/main.ts', { ORDERS_URL: 'http://a' }, 'billing: serviceFetch: origins[0] must'],
  ['identity-core/main.ts', { KEY_ROTATION_SECONDS: '1h' }, 'identity-core: KEY_ROTATION_SECONDS'],
])('%s ends with one line for %j', async (file, env, line) => {
  expect(await complaint(file, env)).toContain(line)
})

it('the story ends with one line for a flag that it does not know', async () => {
  expect(await complaint('start.ts', {}, ['--onec'])).toBe(
    'start: unknown option --onec; there are --once, --no-page and the story migration',
  )
})
