import { randomBytes } from 'node:crypto'
import { migration } from 'express-service-auth/postgres'
import { redisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintedBy, sessionOf } from '../support/core/core-client.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../support/core/identity-core/identity-core.js'
import {
  createDatabase,
  type PostgresDatabase,
  sharedPostgres,
} from '../support/postgres/postgres-database.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'
import { type PlacedBlocks, placeBlocks } from './blocks.js'
import { type RunningApp, runBlock, startBlock } from './running-blocks.js'

const PAGES = [
  ...['denylist', 'logging', 'how-it-decides', 'idempotency', 'migration-endpoint'],
  ...['reasons', 'sessions', 'testing'],
  'stores/postgres',
].map((name) => `docs/${name}.md`)

/** Blocks that serve at `PORT`. */
const APPS = [
  'A receiver with a denylist',
  'A receiver with metrics',
  'A store that encrypts',
  'A write in one transaction',
  'An endpoint for both',
  'An endpoint for the hook',
  'An error handler',
]
const PROGRAMS = [
  'A caller without Docker',
  'A complete single-use store',
  'Hostile tokens',
  'On a serverless platform',
]

const postgres = await sharedPostgres()
let placed: PlacedBlocks
let core: IdentityCore
let redis: RedisServer
let database: PostgresDatabase
/** By their headings; all are started at once. */
let apps: ReadonlyMap<string, RunningApp>

beforeAll(async () => {
  ;[placed, core, redis, database] = await Promise.all([
    placeBlocks('examples', ...PAGES),
    startIdentityCore(),
    startRedis(),
    createDatabase(postgres),
  ])
  // The commands of the page run the same SQL.
  await ask(`${migration()}; ${CREATE_ORDERS}`)
  const environment = {
    CORE_URL: core.url,
    ISSUER: core.issuer,
    REDIS_URL: redis.url,
    DATABASE_URL: database.url,
    RESULT_KEY: randomBytes(32).toString('base64'),
    EXPORT_MS: '1000',
  }
  const started = APPS.map(
    async (heading) => [heading, await startBlock(placed, heading, environment)] as const,
  )
  apps = new Map(await Promise.all(started))
})

afterAll(async () => {
  await Promise.all([...apps.values()].map((app) => app.stop()))
  await Promise.all([placed.remove(), core.close(), redis.stop()])
})

const ask = (text: string) => postgres.query(text, [], database.name)

function appOf(heading: string): RunningApp {
  const app = apps.get(heading)
  if (app === undefined) throw new Error(`«${heading}» is no app`)
  return app
}

describe.concurrent('the code in the pages', () => {
  it('is run by the tests below, all of it', () => {
    const headings = placed.blocks.map(({ heading }) => heading)
    expect(headings.sort()).toEqual([...APPS, ...PROGRAMS].sort())
  })
})

describe.concurrent('the programs', () => {
  it.each(PROGRAMS)('«%s» runs as it stands', async (heading) => {
    await runBlock(placed, heading)
  })
})

describe.concurrent('the error handler', () => {
  const app = (): RunningApp => appOf('An error handler')

  it('logs the error, and does not send it', async () => {
    const answer = await fetch(`${app().url}/orders/1?secret=1`)
    const body = { type: 'about:blank', title: 'Internal Server Error', status: 500 }
    expect([answer.status, await answer.json()]).toEqual([500, body])
    const isLogged = () => app().complaints().includes('needs a serviceAuth before it')
    await until('it is logged', async () => isLogged())
    expect(app().complaints()).toContain('GET /orders/1: wrong_wiring')
    expect(app().complaints()).not.toContain('secret=1')
  })
})

describe.concurrent('the write on Postgres', () => {
  const token = (claims: object = {}): Promise<string> =>
    mintedBy(core, { ...CLAIMS, jti: String(Math.random()), ...claims })

  async function order(bearer: string, key: string, item: unknown = 'tea'): Promise<Response> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    return fetch(`${appOf('A write in one transaction').url}/orders`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ item }),
    })
  }

  it('commits an order with its record, once', async () => {
    const first = await order(await token(), 'k-1', 'glass')
    const retry = await order(await token(), 'k-1', 'glass')
    expect([first.status, retry.status]).toEqual([201, 201])
    expect(retry.headers.get('idempotent-replayed')).toBe('true')
    expect(await retry.json()).toEqual(await first.json())
    expect((await order(await token(), 'k-7', 7)).status).toBe(400)
    expect(await ask(`select item from orders where item = 'glass'`)).toHaveLength(1)
  })
})

describe.concurrent('the denylist', () => {
  const app = (): RunningApp => appOf('A receiver with a denylist')

  it('shuts a caller out, and lets it in again', async () => {
    const bearer = await mintedBy(core, CLAIMS)
    const status = async (): Promise<number> =>
      (await fetch(app().url, { headers: { authorization: `Bearer ${bearer}` } })).status
    expect(await status()).toBe(404)
    const client = new Redis(redis.url, { lazyConnect: true })
    const denylist = redisDenylist(client)
    const target = { issuer: core.issuer, kind: 'caller', value: 'billing' } as const
    await denylist.deny({ ...target, reason: 'leaked', by: 'test', at: 1, until: null }, PATIENTLY)
    await until('it is shut out', async () => (await status()) === 403)
    await denylist.allow(target, PATIENTLY)
    await until('it is let in', async () => (await status()) === 404)
    denylist.close()
    client.disconnect()
  })
})

describe.concurrent('the endpoint for late sign-ups', () => {
  const asked = (connection: string) =>
    JSON.stringify({
      externalUserId: 'gus',
      identities: [{ provider: 'auth0', connection, userId: 'gus' }],
    })

  async function ask(token: string, body: string): Promise<readonly [number, string | null]> {
    const answer = await fetch(`${appOf('An endpoint for the hook').url}/migrate-user`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    })
    return [answer.status, answer.headers.get('retry-after')]
  }

  it('answers as its table says', async () => {
    const token = '0123456789abcdef0123456789abcdef'
    expect(await ask(`${token}x`, asked('Users'))).toEqual([401, null])
    expect(await ask(token, '{}')).toEqual([400, null])
    expect(await ask(token, asked('Others'))).toEqual([403, null])
    // Where the app has none of the older service to ask.
    expect(await ask(token, asked('Users'))).toEqual([503, '5'])
  })
})

describe.concurrent('the endpoint for users and services', () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  async function read(headers: Record<string, string>): Promise<readonly [number, string]> {
    const answer = await fetch(`${appOf('An endpoint for both').url}/orders/1`, { headers })
    return [answer.status, await answer.text()]
  }

  const service = async (claims: object = {}) =>
    bearer(await mintedBy(core, { ...CLAIMS, ...claims }))

  it('serves each side by its own verifier, and nobody who brings both or nothing', async () => {
    const session = await sessionOf('alice', core)
    const cookie = `sAccessToken=${session}`
    expect(await read(await service())).toEqual([200, '{"id":"1","by":"billing"}'])
    expect(await read(bearer(session))).toEqual([200, '{"id":"1","by":"alice"}'])
    expect(await read({ cookie })).toEqual([200, '{"id":"1","by":"alice"}'])
    expect((await read(await service({ permissions: [] })))[0]).toBe(403)
    expect((await read({}))[0]).toBe(401)
    expect((await read({ cookie, ...(await service()) }))[0]).toBe(401)
    expect((await read({ cookie: `${cookie}; ${cookie}` }))[0]).toBe(401)
    expect((await read({ cookie: 'sAccessToken=' }))[0]).toBe(401)
    expect((await read({ cookie: cookie.slice(0, -8) }))[0]).toBe(401)
  })
})

describe.concurrent('the metrics', () => {
  it('count the decisions', async () => {
    await fetch(appOf('A receiver with metrics').url)
    const printed = () => appOf('A receiver with metrics').printed()
    await until('they are printed', async () =>
      /express_service_auth\.decisions[\s\S]*credentials_missing/.test(printed()),
    )
  })
})

describe.concurrent('the store that encrypts', () => {
  it('replays a result that Redis holds encrypted', async () => {
    const order = async (): Promise<readonly unknown[]> => {
      const bearer = await mintedBy(core, CLAIMS)
      const answer = await fetch(`${appOf('A store that encrypts').url}/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${bearer}`,
          'content-type': 'application/json',
          'idempotency-key': 'encrypted',
        },
        body: '{"item":"a-secret-item"}',
      })
      return [answer.status, answer.headers.get('idempotent-replayed'), await answer.text()]
    }
    expect(await order()).toEqual([201, null, '{"item":"a-secret-item"}'])
    expect(await order()).toEqual([201, 'true', '{"item":"a-secret-item"}'])
    const client = new Redis(redis.url)
    const keys = await client.keys('esa:*')
    const values = await Promise.all(keys.map((key) => client.dump(key)))
    client.disconnect()
    expect(values.length).toBeGreaterThan(0)
    expect(values.filter((value) => value?.includes('a-secret-item'))).toEqual([])
  })
})

const CREATE_ORDERS = 'create table orders (id uuid primary key, item text not null)'
const PATIENTLY = { timeoutMs: 20_000 }
const CLAIMS = {
  sub: 'billing',
  aud: 'orders',
  source: 'microservice',
  token_type: 'service-access',
  permissions: ['orders:read', 'orders:write'],
}
