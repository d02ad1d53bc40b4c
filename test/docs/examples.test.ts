import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { migration } from 'express-service-auth/postgres'
import { afterAll, describe, expect, it } from 'vitest'
import { mintedBy, sessionOf } from '../support/core/core-client.js'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { createDatabase, sharedPostgres } from '../support/postgres/postgres-database.js'
import { startRedis } from '../support/redis/redis.js'
import { placeBlocks } from './programs.js'

const PAGES = [
  ...['how-it-decides', 'idempotency', 'migration-endpoint', 'sessions', 'testing'],
  'stores/postgres',
].map((name) => `docs/${name}.md`)

/** Blocks that serve at `PORT`. All others but this part of a program come to an end. */
const PART = 'Encrypted results'
const APPS = ['A write in one transaction', 'An endpoint for both', 'An endpoint for the hook']

const postgres = await sharedPostgres()
const [placed, core, redis, database] = await Promise.all([
  placeBlocks('examples', ...PAGES),
  startIdentityCore(),
  startRedis(),
  createDatabase(postgres),
])
const ask = (text: string) => postgres.query(text, [], database.name)
// The commands of the page run the same SQL.
await ask(`${migration()}; create table orders (id uuid primary key, item text not null)`)
const claims = { aud: 'orders', source: 'microservice', token_type: 'service-access' }
const policy = {
  ...{ issuer: core.issuer, audience: 'orders', source: 'microservice' },
  ...{ tokenType: 'service-access', callers: { billing: ['orders:read', 'orders:write'] } },
}
await writeFile(`${placed.folder}/policy.json`, JSON.stringify(policy))
const environment = {
  CORE_URL: core.url,
  ISSUER: core.issuer,
  REDIS_URL: redis.url,
  DATABASE_URL: database.url,
}
afterAll(async () => {
  await Promise.all([placed.remove(), core.close(), redis.stop()])
})

const start = (heading: string) => placed.start(heading, environment)

/** The header of a new token of billing. */
async function bearer(...permissions: string[]) {
  const jti = randomUUID()
  const token = await mintedBy(core, { ...claims, sub: 'billing', permissions, jti })
  return { authorization: `Bearer ${token}` }
}

describe.concurrent('the code in the pages', () => {
  const headings = placed.blocks.map(({ heading }) => heading)

  it.each(headings.filter((heading) => ![PART, ...APPS].includes(heading)))(
    '«%s» ends',
    async (heading) => {
      await placed.run(heading)
    },
  )

  it('commits an order with its record on Postgres, once', async () => {
    const { url } = await start('A write in one transaction')
    const order = async (key: string, item: unknown) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': key }
      const answer = await fetch(`${url}/orders`, {
        method: 'POST',
        headers: { ...headers, ...(await bearer('orders:write')) },
        body: JSON.stringify({ item }),
      })
      const replayed = answer.headers.get('idempotent-replayed')
      return { status: answer.status, replayed, text: await answer.text() }
    }
    const first = await order('k-1', 'glass')
    const retry = await order('k-1', 'glass')
    expect([first.status, retry.status]).toEqual([201, 201])
    expect(retry).toEqual({ ...first, replayed: 'true' })
    expect((await order('k-7', 7)).status).toBe(400)
    expect(await ask(`select item from orders where item = 'glass'`)).toHaveLength(1)
  })

  it('answers to late sign-ups as the table says', async () => {
    const { url } = await start('An endpoint for the hook')
    const token = '0123456789abcdef0123456789abcdef'
    const asked = (connection: string) =>
      JSON.stringify({
        externalUserId: 'gus',
        identities: [{ provider: 'auth0', connection, userId: 'gus' }],
      })
    const statusOf = async (secret: string, body: string): Promise<number> => {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      return (await fetch(`${url}/migrate-user`, { method: 'POST', headers, body })).status
    }
    expect(await statusOf(`${token}x`, asked('Users'))).toBe(401)
    expect(await statusOf(token, '{}')).toBe(400)
    expect(await statusOf(token, asked('Others'))).toBe(403)
    // Where the app has none of the older service to ask.
    expect(await statusOf(token, asked('Users'))).toBe(503)
  })

  it('serves users and services, each by its own verifier, and nobody who brings both', async () => {
    const { url } = await start('An endpoint for both')
    const read = async (headers: Record<string, string>) => {
      const answer = await fetch(`${url}/orders/1`, { headers })
      return [answer.status, await answer.text()]
    }
    const session = await sessionOf('alice', core)
    const cookie = `sAccessToken=${session}`
    expect(await read(await bearer('orders:read'))).toEqual([200, '{"id":"1","by":"billing"}'])
    expect(await read({ authorization: `Bearer ${session}` })).toEqual([
      200,
      '{"id":"1","by":"alice"}',
    ])
    expect(await read({ cookie })).toEqual([200, '{"id":"1","by":"alice"}'])
    expect((await read(await bearer()))[0]).toBe(403)
    expect((await read({ cookie, ...(await bearer('orders:read')) }))[0]).toBe(401)
  })
})
