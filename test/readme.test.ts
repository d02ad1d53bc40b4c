import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type IdentityCore, startIdentityCore } from '../example-app/identity-core/identity-core.js'
import { API_KEY, mintedBy } from './example-app/core-client.js'
import { freePort } from './support/free-port.js'
import { type RedisServer, startRedis } from './support/redis.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
// Inside of the project, where its packages are found.
const FOLDER = fileURLToPath(new URL('.readme', import.meta.url))
const TSCONFIG = `${FOLDER}/tsconfig.json`

const readme = await readFile(`${ROOT}README.md`, 'utf8')
const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code ?? '')
const fileOf = (index: number): string => `${FOLDER}/block-${index}.ts`

beforeAll(async () => {
  await mkdir(FOLDER, { recursive: true })
  const config = { extends: '../../tsconfig.json', include: ['*.ts'], exclude: [] }
  await writeFile(TSCONFIG, JSON.stringify(config))
  await Promise.all(blocks.map((code, index) => writeFile(fileOf(index), code)))
})

afterAll(() => rm(FOLDER, { recursive: true, force: true }))

describe('the code in the README', () => {
  it('compiles, each block as it stands', async () => {
    expect(blocks.length).toBeGreaterThan(0)
    const tsc = `${ROOT}node_modules/.bin/tsc`
    const compiled = await promisify(execFile)(tsc, ['-p', TSCONFIG]).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    )
    expect(compiled.stdout).toBe('')
  }, 60_000)
})

describe('the kit for tests in the README', () => {
  it('runs as it stands', async () => {
    const index = blocks.findIndex((code) => code.includes('express-service-auth/testing'))
    const tsx = `${ROOT}node_modules/.bin/tsx`
    await promisify(execFile)(tsx, ['--tsconfig', TSCONFIG, fileOf(index)])
  })
})

describe("the README's example", () => {
  let core: IdentityCore
  let redis: RedisServer
  let example: ChildProcess
  let url: string

  beforeAll(async () => {
    ;[core, redis] = await Promise.all([startIdentityCore({ apiKey: API_KEY }), startRedis()])
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const environment = { ISSUER: core.url, REDIS_URL: redis.url, PORT: String(port) }
    example = spawn(`${ROOT}node_modules/.bin/tsx`, ['--tsconfig', TSCONFIG, fileOf(0)], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await answering(url)
  })

  afterAll(async () => {
    if (example.exitCode === null) {
      example.kill()
      await once(example, 'exit')
    }
    await Promise.all([core.close(), redis.stop()])
  })

  const token = (claims: object = {}): Promise<string> =>
    mintedBy(core.url, {
      jwksDomain: core.url,
      payload: { ...CLAIMS, jti: String(Math.random()), ...claims },
    })

  async function order(bearer: string, key: string, item = 'tea'): Promise<Response> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    return fetch(`${url}/orders`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ item }),
    })
  }

  it('creates an order once and lets it be read', async () => {
    const first = await order(await token(), 'k-1')
    expect(first.status).toBe(201)
    const location = first.headers.get('location')
    const created = await first.json()
    const retry = await order(await token(), 'k-1')
    expect([retry.status, retry.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(await retry.json()).toEqual(created)
    const read = await fetch(`${url}${location}`, {
      headers: { authorization: `Bearer ${await token()}` },
    })
    expect([read.status, await read.json()]).toEqual([200, created])
  })

  it('answers as its tables say', async () => {
    const used = await token()
    expect((await order(used, 'k-2')).status).toBe(201)
    const statuses = {
      'no token': (await fetch(`${url}/orders/1`)).status,
      'a replayed token': (await order(used, 'k-3')).status,
      'a key reused': (await order(await token(), 'k-2', 'coffee')).status,
      'no key': (await order(await token(), '')).status,
      'another audience': (await order(await token({ aud: 'stock' }), 'k-4')).status,
      'an unapproved caller': (await order(await token({ sub: 'stranger' }), 'k-5')).status,
      'a missing permission': (await order(await token({ sub: 'reporting' }), 'k-6')).status,
    }
    expect(statuses).toEqual({
      'no token': 401,
      'a replayed token': 401,
      'a key reused': 422,
      'no key': 400,
      'another audience': 401,
      'an unapproved caller': 403,
      'a missing permission': 403,
    })
  })
})

const CLAIMS = {
  sub: 'billing',
  aud: 'orders',
  source: 'microservice',
  token_type: 'service-access',
  permissions: ['orders:read', 'orders:write'],
}

async function answering(url: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const answered = await fetch(url).then(
      () => true,
      () => false,
    )
    if (answered) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`nothing answers at ${url}`)
}
