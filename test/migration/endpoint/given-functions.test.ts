import { describe, expect, it } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import type { MigrationEndpointOptions } from '../../../src/migration/endpoint/endpoint-options.js'
import { API_KEY, openGatedCore } from './gated-core.js'
import {
  bodyAbout,
  ISSUER,
  newId,
  openEndpoint,
  PASSWORD_LOGIN,
  TOKEN,
  UNAVAILABLE,
} from './kit.js'

const core = await openGatedCore()

/** For what comes before the part that is silent, also on a busy machine. */
const LONG_ENOUGH_MS = 3000

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
  const client = coreClient({ baseUrl: core.url, apiKey: API_KEY })
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
    ['core.coreIdOf', 'core_unavailable', (fail) => ({ core: { ...client, coreIdOf: fail } })],
    ['core.importUser', 'outcome_unknown', (fail) => ({ core: { ...client, importUser: fail } })],
  ]
  for (const [part, reason, options] of parts) {
    it.each(ways)(`${part} that %s: the 503`, async (_, fail) => {
      const endpoint = await openEndpoint(core, {
        options: { timeoutMs: LONG_ENOUGH_MS, ...options(fail as () => never) },
      })
      const reply = await endpoint.post(bodyAbout(newId()))
      expect(reply).toMatchObject(UNAVAILABLE)
      expect(reply.headers.has('x-leak')).toBe(false)
      expect(endpoint.decisions[0]?.reason).toBe(reason)
      expect(endpoint.errors).toEqual([])
    })
  }

  it('tokens that are too short are none: the 503', async () => {
    const endpoint = await openEndpoint(core, {
      options: { issuers: issuersWith(async () => ['short'] as never) },
    })
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(503)
  })

  it('tokens are asked for each time, and an empty list lets nobody in', async () => {
    const lists: string[][] = [[], [TOKEN], []]
    const endpoint = await openEndpoint(core, {
      options: { issuers: issuersWith(async () => (lists.shift() ?? []) as never) },
    })
    const statuses: number[] = []
    for (let time = 0; time < 3; time += 1) {
      statuses.push((await endpoint.post(bodyAbout(newId()))).status)
    }
    expect(statuses).toEqual([401, 200, 401])
  })

  it('one token of two issuers: next(error), without the token', async () => {
    const given = issuersWith(async () => [TOKEN] as never)
    const endpoint = await openEndpoint(core, {
      options: { issuers: { ...given, other: given[ISSUER] as never } },
    })
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(599)
    expect(endpoint.errors).toMatchObject([{ code: 'wrong_wiring' }])
  })

  it('a signal tells loadUser that nobody waits any more', async () => {
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
  })

  it('a request whose id cannot be read changes nothing', async () => {
    const endpoint = await openEndpoint(core, {
      before: [
        (request, _response, next) => {
          Object.defineProperty(request, 'id', { get: thrown })
          next()
        },
      ],
    })
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(200)
    expect(endpoint.errors).toEqual([])
  })

  it('an observer that throws or rejects changes nothing', async () => {
    const observers = [thrown, rejected, never]
    for (const onDecision of observers) {
      const endpoint = await openEndpoint(core, { options: { onDecision } })
      expect((await endpoint.post(bodyAbout(newId()))).status).toBe(200)
      expect(endpoint.errors).toEqual([])
    }
  })
})
