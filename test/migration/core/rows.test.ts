import { describe, expect, it } from 'vitest'
import type { StagedRow } from '../../../src/migration/core/core-client.js'
import { ok, type ScriptedCore, startScriptedCore, tooLarge } from './scripted-core.js'

const rowOf = (id: string, more: object = {}) => ({
  id,
  status: 'NEW',
  createdAt: 1,
  updatedAt: 1,
  loginMethods: [],
  ...more,
})
const queryOf = (url: string) => new URL(url, 'http://core').searchParams

/** A list as the core keeps it: newest first, its tokens name the first row of the next page. */
async function coreWithRows(ids: string[], page = 2): Promise<ScriptedCore> {
  return startScriptedCore(({ url }) => {
    const query = queryOf(url)
    // The core compares, so a token whose row has gone still says where to go on.
    const token = query.get('paginationToken')
    const from = token === null ? 0 : ids.findIndex((id) => id <= token)
    const rest = from === -1 ? [] : ids.slice(from)
    const next = rest[page]
    return ok({
      users: rest.slice(0, page).map((id) => rowOf(id)),
      ...(next !== undefined && { nextPaginationToken: next }),
    })
  })
}

const idsOf = async (rows: AsyncIterable<StagedRow>): Promise<string[]> => {
  const ids: string[] = []
  for await (const { id } of rows) ids.push(id)
  return ids
}

describe('all rows', () => {
  it('come from all pages, of 500 rows each', async () => {
    const core = await coreWithRows(['e', 'd', 'c', 'b', 'a'])
    expect(await idsOf(core.client().rows('FAILED'))).toEqual(['e', 'd', 'c', 'b', 'a'])
    const queries = core.requests.map(({ url }) => Object.fromEntries(queryOf(url)))
    expect(queries).toEqual([
      { status: 'FAILED', limit: '500' },
      { status: 'FAILED', limit: '500', paginationToken: 'c' },
      { status: 'FAILED', limit: '500', paginationToken: 'a' },
    ])
  })

  it('go on behind a row that has gone between two pages', async () => {
    const ids = ['e', 'd', 'c', 'b', 'a']
    const core = await coreWithRows(ids)
    const seen: string[] = []
    for await (const { id } of core.client().rows()) {
      seen.push(id)
      if (id === 'd') ids.splice(ids.indexOf('c'), 1)
    }
    expect(seen).toEqual(['e', 'd', 'b', 'a'])
  })

  it('that come again and again end in an error', async () => {
    let asked = 0
    const core = await startScriptedCore(() => {
      asked += 1
      return ok({ users: [rowOf('r')], nextPaginationToken: asked % 2 === 0 ? 'a' : 'b' })
    })
    const rows = idsOf(core.client().rows())
    await expect(rows).rejects.toMatchObject({ code: 'malformed_reply', outcome: 'refused' })
    expect(core.requests).toHaveLength(3)
  })

  it('are asked for by half as many while a page is too large', async () => {
    const core = await coreWithRows(['b', 'a'])
    const limits: number[] = []
    const fetchPage: typeof fetch = async (input, init) => {
      const limit = Number(queryOf(String(input)).get('limit'))
      limits.push(limit)
      return limit > 125 ? tooLarge() : fetch(input, init)
    }
    expect(await idsOf(core.client({ fetch: fetchPage }).rows())).toEqual(['b', 'a'])
    expect(limits).toEqual([500, 250, 125])
  })

  it('of which one alone is too large end in an error', async () => {
    const core = await coreWithRows(['a'])
    const rows = idsOf(core.client({ fetch: async () => tooLarge() }).rows())
    await expect(rows).rejects.toMatchObject({ code: 'too_large', outcome: 'refused' })
  })

  it('end with the signal, between two pages and in one', async () => {
    const core = await coreWithRows(['e', 'd', 'c', 'b', 'a'])
    const ending = new AbortController()
    const reading = (async () => {
      for await (const _ of core.client().rows(undefined, { signal: ending.signal })) ending.abort()
    })()
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
    expect(core.requests).toHaveLength(1)
  })
})

describe('a row', () => {
  it('with another status is no row', async () => {
    const core = await startScriptedCore([ok({ users: [rowOf('a', { status: 'DONE' })] })])
    await expect(core.client().listRows()).rejects.toMatchObject({ code: 'malformed_reply' })
  })

  it('of a recipe of a newer core is one', async () => {
    const methods = [{ recipeId: 'webauthn', superTokensUserId: 'core-1', credential: {} }]
    const core = await startScriptedCore([ok({ users: [rowOf('a', { loginMethods: methods })] })])
    const { users } = await core.client().listRows()
    expect(users[0]?.loginMethods).toEqual([{ recipeId: 'webauthn', superTokensUserId: 'core-1' }])
  })

  it('loses its secrets, and what the schemas do not name', async () => {
    const kept = {
      ...{ id: 'core-1', status: 'FAILED', createdAt: 1, updatedAt: 2, errorMessage: 'E022: x' },
      externalUserId: 'legacy-1',
      userMetadata: { plan: 'pro' },
      userRoles: [{ role: 'admin', tenantIds: ['public'] }],
    }
    const device = { deviceName: 'phone' }
    const method = { recipeId: 'emailpassword', email: 'a@example.com' }
    const row = {
      ...kept,
      totpDevices: [{ ...device, secretKey: 'JBSWY3DPEHPK3PXP' }],
      loginMethods: [
        { ...method, passwordHash: '$2a$10$abcdefghijklmnopqrstuv' },
        { ...method, plainTextPassword: 'correct-horse-battery-staple' },
      ],
      raw_data: 'correct-horse-battery-staple',
    }
    const core = await startScriptedCore([ok({ users: [row] })])
    const expected = { ...kept, totpDevices: [device], loginMethods: [method, method] }
    expect((await core.client().listRows()).users).toEqual([expected])
    for await (const each of core.client().rows()) expect(each).toEqual(expected)
  })
})
