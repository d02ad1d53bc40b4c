import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { openGatedCore } from './gated-core.js'
import {
  bodyAbout,
  endpointOptions,
  newId,
  OTHER_TOKEN,
  openEndpoint,
  type PostOptions,
  TOKEN,
} from './kit.js'

const core = await openGatedCore()

const PASSWORD = { plainTextPassword: 'a password of nobody' }

/** What is wrong with a request, in the order in which a caller is told. */
const FAULTS: readonly [status: number, reason: string, of: PostOptions][] = [
  [401, 'token_unknown', { token: `no-token-${'x'.repeat(32)}` }],
  [429, 'credential_limited', {}],
  [405, 'method_not_allowed', { method: 'PUT' }],
  [415, 'media_type_unsupported', { headers: { 'content-type': 'text/plain' } }],
  [413, 'body_too_large', {}],
  [400, 'body_malformed', {}],
  [429, 'user_limited', {}],
  [403, 'user_unknown', {}],
  [200, 'existing', {}],
]

describe.each(EXPRESS_MAJORS)('the order of the checks, on $major', ({ express }) => {
  it('each fault is told before all that come after it', async () => {
    /** How many faults from the front the request does not have. */
    let fixed = 0
    const has = (reason: string): boolean => FAULTS.findIndex(([, of]) => of === reason) >= fixed
    const over = { msBeforeNext: 1 }
    const limiter = (reason: string) => ({
      consume: async () => {
        if (has(reason)) throw over
      },
    })
    const id = newId()
    const endpoint = await openEndpoint(core, {
      express,
      options: {
        maxBodyBytes: 1024,
        limits: { credential: limiter('credential_limited'), user: limiter('user_limited') },
        loadUser: ({ externalUserId }) =>
          has('user_unknown')
            ? undefined
            : {
                identities: [
                  {
                    provider: 'auth0',
                    connection: 'users',
                    userId: externalUserId,
                    email: `${externalUserId}@example.com`,
                    ...PASSWORD,
                  },
                ],
              },
      },
    })
    await endpointOptions(core.url).core.importUser({
      externalUserId: id,
      loginMethods: [{ recipeId: 'emailpassword', email: `${id}@example.com`, ...PASSWORD }],
    })
    for (const [index, [status, reason]] of FAULTS.entries()) {
      fixed = index
      const options = Object.assign({}, ...FAULTS.slice(index).map(([, , faulty]) => faulty))
      const more = has('body_malformed') ? { more: true } : {}
      const filler = has('body_too_large') ? { filler: 'x'.repeat(1024) } : {}
      const reply = await endpoint.post({ ...bodyAbout(id), ...more, ...filler }, options)
      expect([reply.status, endpoint.decisions.at(-1)?.reason]).toEqual([status, reason])
    }
  })
})

it('a limiter counts a digest of the token and of the user, at each issuer', async () => {
  const counted: string[] = []
  const limiter = { consume: async (key: unknown) => counted.push(String(key)) }
  const endpoint = await openEndpoint(core, {
    options: { limits: { credential: limiter, user: limiter } },
  })
  const id = newId()
  for (const token of [TOKEN, TOKEN, OTHER_TOKEN]) await endpoint.post(bodyAbout(id), { token })
  const [credential, user, ...others] = counted
  expect(others.slice(0, 2)).toEqual([credential, user])
  expect(new Set(counted).size).toBe(4)
  expect(counted.join(' ')).not.toMatch(/user-|example/)
})
