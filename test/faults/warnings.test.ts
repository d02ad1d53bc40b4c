import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { TestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { launch } from '../support/process/launch.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'

let issuer: TestIssuer
let redis: RedisServer
beforeAll(async () => {
  ;[issuer, redis] = await Promise.all([createTestIssuer({ maxAgeSeconds: 300 }), startRedis()])
})
afterAll(() => Promise.all([issuer.close(), redis.stop()]))
beforeEach(() => issuer.up())

const onRedis = () => ({ REDIS: JSON.stringify({ host: redis.host, port: redis.port }) })

const PROGRAM = new URL('unobserved-receiver.ts', import.meta.url)
const HOOK_TOKEN = '0123456789abcdef0123456789abcdef'
/** Node writes a warning soon after the response. */
const SETTLE_MS = 200

interface Call {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly claims?: Readonly<Record<string, unknown>>
  readonly tokenHeader?: Readonly<Record<string, unknown>>
  readonly body?: string
}

/** A receiver in a process of its own, with all that it writes to standard error. */
async function startReceiver(env: Readonly<Record<string, string>> = {}) {
  const addresses = { HOOK_TOKEN, ISSUER: issuer.url, JWKS_URI: issuer.jwksUri, ...env }
  const { child, greeting, kill } = await launch<{ port: number }>(PROGRAM, { env: addresses })
  onTestFinished(kill)
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  let aheadSeconds = 0

  async function status(path: string, call: Call = {}): Promise<number> {
    const { method = 'GET', headers, claims, tokenHeader, body = null } = call
    const now = Math.floor(Date.now() / 1000) + aheadSeconds
    const token = issuer.token({ iat: now, exp: now + 300, ...claims }, tokenHeader)
    const response = await fetch(`http://127.0.0.1:${greeting.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
      body,
    })
    await response.arrayBuffer()
    return response.status
  }

  return {
    status,
    write: (key: string = crypto.randomUUID()) =>
      status('/writes', { method: 'POST', headers: { 'idempotency-key': key } }),
    use: () => status('/uses', { method: 'POST' }),
    importUser: (path: string) =>
      status(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${HOOK_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          externalUserId: 'ada',
          identities: [{ provider: 'auth0', connection: 'users', userId: 'ada' }],
        }),
      }),
    async advance(seconds: number) {
      aheadSeconds += seconds
      child.send(seconds)
      await once(child, 'message')
    },
    /** The lines on standard error so far. */
    async lines(): Promise<string[]> {
      await delay(SETTLE_MS)
      return stderr.split('\n').filter((line) => line !== '' && !line.startsWith('(Use `node'))
    },
  }
}

const warning = (code: string, text: string): RegExp =>
  new RegExp(`^\\(node:\\d+\\) \\[${code}\\] ServiceAuthWarning: express-service-auth: ${text}`)

const KEY_SET = warning('SERVICE_AUTH_KEY_SET_UNAVAILABLE', 'the key set at http://[\\d.:]+/')
const STORE = warning('SERVICE_AUTH_STORE_UNAVAILABLE', 'the .*store.* failed')
const DENYLIST = warning('SERVICE_AUTH_DENYLIST_UNAVAILABLE', 'a live denylist ')

describe('a receiver without observers', () => {
  it('warns once that the key set is unavailable, with the reason and a remedy', async () => {
    const receiver = await startReceiver()
    issuer.down()
    for (const path of ['/without-express', '/first', '/second', '/first', '/second']) {
      expect(await receiver.status(path)).toBe(503)
    }
    const lines = await receiver.lines()
    expect(lines).toEqual([expect.stringMatching(KEY_SET)])
    expect(lines[0]).toContain(`${issuer.jwksUri} could not be fetched (reason: network`)
    expect(lines[0]).toContain('Check the address in the policy')
  })

  it('warns no second time when the key set has recovered and fails again', async () => {
    const receiver = await startReceiver()
    const fails = async (): Promise<void> => {
      issuer.down()
      await receiver.advance(7200)
      expect(await receiver.status('/first')).toBe(503)
    }
    await fails()
    // A closed key set answers again after its back-off, by the receiver's clock.
    issuer.up()
    await receiver.advance(60)
    expect(await receiver.status('/first')).toBe(200)
    await fails()
    expect(await receiver.lines()).toEqual([expect.stringMatching(KEY_SET)])
  })

  it('warns once of a store that several middlewares share, also if it fails again', async () => {
    const receiver = await startReceiver(onRedis())
    await until('Redis answers', async () => (await receiver.write()) === 200)
    await redis.kill()
    expect(await Promise.all([receiver.write(), receiver.use()])).toEqual([503, 503])
    expect(await Promise.all([receiver.write(), receiver.use()])).toEqual([503, 503])
    const lines = await receiver.lines()
    expect(lines).toEqual([expect.stringMatching(STORE)])
    expect(lines[0]).toContain('Check that its server (Redis, Postgres) runs')

    await redis.restart()
    await until('Redis answers again', async () => (await receiver.use()) === 200)
    await receiver.advance(3610)
    await redis.kill()
    expect(await receiver.write()).toBe(503)
    expect(await receiver.lines()).toHaveLength(1)
    await redis.restart()
  })

  it('warns once of a denylist that guards services and sessions', async () => {
    await redis.kill()
    const receiver = await startReceiver(onRedis())
    const session = { tokenHeader: { version: '5' } }
    expect(await receiver.status('/either', session)).toBe(503)
    expect(await receiver.status('/either')).toBe(503)
    expect(await receiver.status('/denied')).toBe(503)
    expect(await receiver.lines()).toEqual([expect.stringMatching(DENYLIST)])
    await redis.restart()
    await until('the denylist is known', async () => (await receiver.status('/denied')) === 200)
  })

  it.each([
    ['/coupled', 503, 'STORE', 'the .*store.* failed'],
    ['/broken', 500, 'DENYLIST', 'a live denylist '],
    ['/wrong-uses', 500, 'STORE', 'consume of the store must resolve to a boolean'],
    ['/wrong-writes', 500, 'STORE', 'the store of requireIdempotencyKey failed'],
    ['/failing-ends', 200, 'STORE', 'the store of requireIdempotencyKey failed'],
    ['/failing-renewals', 200, 'STORE', 'the store of requireIdempotencyKey failed'],
    ['/migrate', 503, 'CORE', 'the core of migrationEndpoint failed .*\\(reason: unreachable\\)'],
    ['/migrate-without-tokens', 503, 'TOKENS', 'the function tokens of migrationEndpoint failed'],
    ['/migrate-without-limiter', 503, 'LIMITER', 'a limiter of migrationEndpoint failed'],
    ['/migrate-without-users', 503, 'USERS', 'loadUser of migrationEndpoint failed'],
  ])(
    'warns once of what fails at %s, which is a %i, and of no secret',
    async (path, status, cause, text) => {
      const receiver = await startReceiver({ NODE_ENV: 'test' })
      const ask = () => {
        if (path.startsWith('/migrate')) return receiver.importUser(path)
        const headers = { 'idempotency-key': crypto.randomUUID() }
        return receiver.status(path, { method: path === '/broken' ? 'GET' : 'POST', headers })
      }
      expect([await ask(), await ask()]).toEqual([status, status])
      const lines = await receiver.lines()
      expect(lines).toEqual([
        expect.stringMatching(warning(`SERVICE_AUTH_${cause}_UNAVAILABLE`, text)),
      ])
      for (const secret of ['a-password', 'an-api-key']) expect(lines[0]).not.toContain(secret)
    },
  )

  it('warns of no refusal', async () => {
    const receiver = await startReceiver(onRedis())
    await until('Redis answers', async () => (await receiver.write('one')) === 200)
    const post = { method: 'POST' } as const
    const json = { 'content-type': 'application/json', 'content-length': '0' }
    expect([
      await receiver.status('/writes', post),
      await receiver.status('/first', { claims: { aud: 'stock' } }),
      await receiver.status('/first', { claims: { sub: 'stranger' } }),
      await receiver.status('/first', { headers: { authorization: 'Bearer x' } }),
      await receiver.status('/writes?other', {
        ...post,
        headers: { 'idempotency-key': 'one', ...json },
      }),
    ]).toEqual([400, 401, 403, 401, 422])
    expect(await receiver.lines()).toEqual([])
  })
})

it.each(['onDecision', 'logDecisions'])('leaves failures to %s', async (observer) => {
  await redis.restart()
  const receiver = await startReceiver({ OBSERVED_BY: observer, ...onRedis() })
  await until('Redis answers', async () => (await receiver.use()) === 200)
  await redis.kill()
  expect(await receiver.use()).toBe(503)
  issuer.down()
  expect(await receiver.status('/second')).toBe(503)
  expect(await receiver.lines()).toEqual([])
  await redis.restart()
})
