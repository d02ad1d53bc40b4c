import { memoryStore } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import type { MigrationEndpointOptions } from '../../../src/migration/endpoint/options.js'
import { type RedisServer, startRedis } from '../../support/redis.js'
import { OUTAGES, startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js'
import { until } from '../../support/until.js'
import { watchedStore } from '../../support/watched-store.js'
import {
  API_KEY,
  bodyAbout,
  type Endpoint,
  ISSUER,
  legacyUser,
  newId,
  openEndpoint,
  PASSWORD_LOGIN,
  TOKEN,
} from './kit.js'
import { openSmallCore, type SmallCore } from './small-core.js'

const TIMEOUT_MS = 800

let core: SmallCore
let server: RedisServer
beforeAll(async () => {
  core = await openSmallCore()
  server = await startRedis()
})
afterAll(async () => {
  await server.stop()
  await core.close()
})

const UNAVAILABLE = {
  status: 503,
  text: '{"type":"about:blank","title":"Service Unavailable","status":503}',
}

/** Refused with the 503 while the proxy has an outage, and served again afterwards. */
async function expectOutage(
  { endpoint, proxy }: { endpoint: Endpoint; proxy: TcpProxy },
  reasons: readonly string[],
): Promise<void> {
  for (const outage of OUTAGES) {
    await until('it serves', async () => (await endpoint.post(bodyAbout(newId()))).status === 200)
    await proxy.fail(outage)
    const id = newId()
    const reply = await endpoint.post(bodyAbout(id))
    expect(reply).toMatchObject(UNAVAILABLE)
    expect(reply.headers.get('retry-after')).toBe('5')
    expect(reasons).toContain(endpoint.decisions.at(-1)?.reason)
    await proxy.restore()
    proxy.cut()
    await until(`the user has come over after: ${outage}`, async () => {
      return (await endpoint.post(bodyAbout(id))).status === 200
    })
    expect([...core.accounts.values()].filter((one) => one.externalUserId === id)).toHaveLength(1)
  }
  expect(endpoint.errors).toEqual([])
}

describe.concurrent('while a part is out of reach, the answer is the 503, and nothing is lost', () => {
  test('the core', async () => {
    const proxy = await startTcpProxy({ host: '127.0.0.1', port: core.port })
    const endpoint = await openEndpoint(core, {
      options: {
        timeoutMs: TIMEOUT_MS,
        core: coreClient({
          baseUrl: `http://127.0.0.1:${proxy.port}`,
          apiKey: API_KEY,
          timeoutMs: 2 * TIMEOUT_MS,
          stageTimeoutMs: 2 * TIMEOUT_MS,
        }),
      },
    })
    await expectOutage({ endpoint, proxy }, ['core_unavailable', 'outcome_unknown'])
    await endpoint.close()
    await proxy.close()
  })

  const overRedis = async () => {
    const proxy = await startTcpProxy({ host: server.host, port: server.port })
    const client = new Redis(`redis://127.0.0.1:${proxy.port}`, { retryStrategy: () => 20 })
    client.on('error', () => {})
    const close = async () => {
      client.disconnect()
      await proxy.close()
    }
    return { proxy, client, close }
  }

  test('the store', async () => {
    const { proxy, client, close } = await overRedis()
    const store = redisStore(client, { timeoutMs: 300 })
    const endpoint = await openEndpoint(core, { options: { store, timeoutMs: 5000 } })
    await expectOutage({ endpoint, proxy }, ['store_unavailable'])
    await endpoint.close()
    await close()
  })

  test('a limiter', async () => {
    const { proxy, client, close } = await overRedis()
    const limiter = new RateLimiterRedis({ storeClient: client, points: 100_000, duration: 60 })
    const endpoint = await openEndpoint(core, {
      options: { timeoutMs: TIMEOUT_MS, limits: { credential: limiter, user: limiter } },
    })
    await expectOutage({ endpoint, proxy }, ['limiter_unavailable'])
    await endpoint.close()
    await close()
  })
})

describe.concurrent('functions that are given', () => {
  const never = () => new Promise<never>(() => {})
  const thrown = () => {
    throw Object.assign(new Error('no'), { status: 418, headers: { 'x-leak': 'yes' } })
  }
  const rejected = () => Promise.reject({ code: 'down' })
  const issuersWith = (tokens: () => never | Promise<never>) => ({
    [ISSUER]: {
      tokens,
      withoutOrganization: ['public'],
      connections: [{ ...PASSWORD_LOGIN, as: { recipeId: 'emailpassword' as const } }],
    },
  })
  const good = { consume: async () => 1 }
  const ways: [string, () => never | Promise<never>][] = [
    ['is silent', never],
    ['throws', thrown],
    ['rejects', rejected],
  ]
  const parts: [string, string, (fail: () => never) => Partial<MigrationEndpointOptions>][] = [
    ['tokens', 'tokens_unavailable', (fail) => ({ issuers: issuersWith(fail) })],
    [
      'limits.credential',
      'limiter_unavailable',
      (fail) => ({ limits: { credential: { consume: fail }, user: good } }),
    ],
    [
      'limits.user',
      'limiter_unavailable',
      (fail) => ({ limits: { credential: good, user: { consume: fail } } }),
    ],
    ['loadUser', 'user_unavailable', (fail) => ({ loadUser: fail })],
    [
      'store.reserve',
      'store_unavailable',
      (fail) => ({ store: { ...memoryStore(), reserve: fail } }),
    ],
    [
      'core.importUser',
      'core_unavailable outcome_unknown',
      (fail) => ({
        core: { ...coreClient({ baseUrl: core.url, apiKey: API_KEY }), importUser: fail },
      }),
    ],
  ]
  for (const [part, reason, options] of parts) {
    test.each(ways)(`${part} that %s: the 503`, async (_, fail) => {
      const endpoint = await openEndpoint(core, {
        options: { timeoutMs: 300, ...options(fail as () => never) },
      })
      const reply = await endpoint.post(bodyAbout(newId()))
      expect(reply).toMatchObject(UNAVAILABLE)
      expect(reply.headers.has('x-leak')).toBe(false)
      expect(reason.split(' ')).toContain(endpoint.decisions[0]?.reason)
      expect(endpoint.errors).toEqual([])
      await endpoint.close()
    })
  }

  test('tokens that are too short are none: the 503', async () => {
    const endpoint = await openEndpoint(core, {
      options: { issuers: issuersWith(async () => ['short'] as never) },
    })
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(503)
    await endpoint.close()
  })

  test('tokens are asked for each time, and an empty list lets nobody in', async () => {
    const lists: string[][] = [[], [TOKEN], []]
    const endpoint = await openEndpoint(core, {
      options: { issuers: issuersWith(async () => (lists.shift() ?? []) as never) },
    })
    const statuses: number[] = []
    for (let time = 0; time < 3; time += 1) {
      statuses.push((await endpoint.post(bodyAbout(newId()))).status)
    }
    expect(statuses).toEqual([401, 200, 401])
    await endpoint.close()
  })

  test('one token of two issuers: next(error), without the token', async () => {
    const given = issuersWith(async () => [TOKEN] as never)
    const endpoint = await openEndpoint(core, {
      options: { issuers: { ...given, other: given[ISSUER] as never } },
    })
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(599)
    expect(endpoint.errors).toMatchObject([{ code: 'wrong_wiring' }])
    await endpoint.close()
  })

  test('a signal tells loadUser that nobody waits any more', async () => {
    let told: AbortSignal | undefined
    const endpoint = await openEndpoint(core, {
      options: {
        timeoutMs: 100,
        loadUser: ({ signal }) => {
          told = signal
          return never()
        },
      },
    })
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(503)
    expect(told?.aborted).toBe(true)
    await endpoint.close()
  })

  test('an observer that throws or rejects changes nothing', async () => {
    const observers = [thrown, rejected, never]
    for (const onDecision of observers) {
      const endpoint = await openEndpoint(core, { options: { onDecision } })
      expect((await endpoint.post(bodyAbout(newId()))).status).toBe(200)
      expect(endpoint.errors).toEqual([])
      await endpoint.close()
    }
  })
})

describe.concurrent('when the time is over', () => {
  test('an import that has begun goes on, and the retry finds it', async () => {
    const slow = await openSmallCore()
    const store = watchedStore(memoryStore())
    const endpoint = await openEndpoint(slow, { options: { store, timeoutMs: 1000 } })
    let letGo = (): void => {}
    const held = new Promise<undefined>((resolve) => (letGo = () => resolve(undefined)))
    slow.beforeImport = () => held
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(503)
    expect(store.endings).toEqual([])
    expect((await endpoint.post(bodyAbout(id))).status).toBe(409)
    letGo()
    await until('the import is settled', async () => store.endings.length === 1)
    expect(store.endings).toEqual([{ type: 'finished', answer: true }])
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(slow.imports).toHaveLength(1)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual([
      'outcome_unknown',
      'in_progress',
      'existing',
    ])
    await endpoint.close()
    await slow.close()
  })

  test('nothing is begun: a reservation that comes too late is given back', async () => {
    const store = watchedStore(memoryStore())
    const small = await openSmallCore()
    const endpoint = await openEndpoint(small, { options: { store, timeoutMs: 1000 } })
    const letGo = store.hold('reserve')
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(503)
    letGo()
    await until('it is given back', async () => store.endings.length === 1)
    expect(store.endings).toEqual([{ type: 'released', answer: true }])
    expect(small.imports).toEqual([])
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    await endpoint.close()
    await small.close()
  })

  test('an answer that is known is given, however long the store takes to keep it', async () => {
    const store = watchedStore(memoryStore())
    const endpoint = await openEndpoint(core, { options: { store, timeoutMs: 1000 } })
    const letGo = store.hold('settle')
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(200)
    letGo()
    store.fail('settle')
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual(['created', 'created'])
    await endpoint.close()
  })
})

describe.concurrent('the key', () => {
  test('is freed by a refusal and by an outage, and kept by an account', async () => {
    const store = watchedStore(memoryStore())
    const small = await openSmallCore()
    const endpoint = await openEndpoint(small, { options: { store } })
    const id = newId()
    small.beforeImport = async () => 'E003: A user with email x already exists in emailpassword.'
    expect((await endpoint.post(bodyAbout(id))).status).toBe(403)
    small.beforeImport = async () => 'org.postgresql.util.PSQLException: connection lost'
    expect([403, 503]).toContain((await endpoint.post(bodyAbout(id))).status)
    small.beforeImport = async () => undefined
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(store.endings.map(({ type }) => type)).toEqual(['released', 'released', 'finished'])
    await endpoint.close()
    await small.close()
  })

  test('of a run that has ended without a result is taken over', async () => {
    const store = memoryStore()
    const endpoint = await openEndpoint(core, {
      options: {
        store: {
          ...store,
          // The instance that had the key is gone.
          renew: async () => true,
          settle: async (run) => store.settle(run, { type: 'abandoned' }),
        },
      },
    })
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual(['created', 'existing'])
    await endpoint.close()
  })

  test('has a lease that is renewed while an import takes long', async () => {
    const small = await openSmallCore()
    const store = watchedStore(memoryStore())
    const endpoint = await openEndpoint(small, { options: { store, leaseSeconds: 1 } })
    let letGo = (): void => {}
    const held = new Promise<undefined>((resolve) => (letGo = () => resolve(undefined)))
    small.beforeImport = () => held
    const id = newId()
    const first = endpoint.post(bodyAbout(id))
    // Three in each lease.
    await until('the first lease is over', async () => store.renewals() > 3)
    expect((await endpoint.post(bodyAbout(id))).status).toBe(409)
    letGo()
    expect((await first).status).toBe(200)
    expect(small.imports).toHaveLength(1)
    await endpoint.close()
    await small.close()
  })

  test('is another one at another issuer, and does not hold identities', async () => {
    const endpoint = await openEndpoint(core, {
      options: {
        loadUser: ({ externalUserId }) => ({
          identities: [
            ...legacyUser(externalUserId).identities.map((login) => ({
              ...login,
              isPrimary: true,
            })),
            {
              ...PASSWORD_LOGIN,
              userId: 'later',
              email: `later-${externalUserId}@example.com`,
              plainTextPassword: 'a password of nobody',
            },
          ],
        }),
      },
    })
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    const more = { identities: [{ ...PASSWORD_LOGIN, userId: 'later' }] }
    expect((await endpoint.post(bodyAbout(id, more))).status).toBe(200)
    await endpoint.close()
  })
})
