import {
  type DecisionEvent,
  type OAuth2Policy,
  requirePermissions,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { hostileTokens } from 'express-service-auth/testing'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createOAuth2TestIssuer, createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { startReceiver } from '../support/receiver/receiver.js'
import { FORBIDDEN, INVALID_TOKEN, NO_TOKEN } from '../support/receiver/refusal-bytes.js'

const first = await createTestIssuer()
const second = await createTestIssuer()
const oauth2 = await createOAuth2TestIssuer()
/** The old scheme and the new one of one issuer, which have keys of their own here. */
const SHARED = 'https://issuer.example'
const old = await createTestIssuer({ issuer: SHARED, source: 'old' })
const renewed = await createOAuth2TestIssuer({ issuer: SHARED })
const issuers = [first, second, oauth2, old, renewed]
afterAll(() => Promise.all(issuers.map((issuer) => issuer.close())))

type AnyPolicy = ServiceAuthPolicy | OAuth2Policy

function authFor(...policies: AnyPolicy[]) {
  const auth = serviceAuth(policies)
  onTestFinished(() => auth.close())
  return auth
}

const policies = (onDecision?: (event: DecisionEvent) => unknown): AnyPolicy[] => [
  first.policy({ onDecision }),
  second.policy({ onDecision }),
  oauth2.policy({ onDecision }),
  old.policy({ onDecision }),
  renewed.policy({ onDecision }),
]

describe.each(EXPRESS_MAJORS)('serviceAuth with several policies, on $major', ({ express }) => {
  it('accepts the tokens of each issuer, by the policy of that issuer', async () => {
    const seen: unknown[] = []
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(...policies()), requirePermissions('orders:read')),
      handler(request, response) {
        seen.push(request.service?.issuer)
        response.end()
      },
    })
    for (const issuer of issuers) {
      const token = issuer.token()
      // New, then remembered.
      expect((await receiver.call(token)).status).toBe(200)
      expect((await receiver.call(token)).status).toBe(200)
      expect(seen.splice(0)).toEqual([issuer.url, issuer.url])
      expect(await receiver.rawWith(`Bearer ${issuer.token({ permissions: [], scope: '' })}`)).toBe(
        FORBIDDEN,
      )
    }
  })

  it.each([
    ['a service issuer', first],
    ['another service issuer', second],
    ['an OAuth 2.0 issuer', oauth2],
  ])('refuses the hostile tokens of %s to the byte', async (_, issuer) => {
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(first.policy(), second.policy(), oauth2.policy())),
    })
    for (const { name, authorization, expect: status } of hostileTokens(issuer)) {
      const answer = await receiver.rawWith(authorization)
      expect(answer, name).toBe(status === 403 ? FORBIDDEN : INVALID_TOKEN)
    }
  })

  it('never verifies a token with the key set or the policy of another issuer', async () => {
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(first.policy(), second.policy(), oauth2.policy())),
    })
    for (const [signer, iss] of [
      [first, second.url],
      [second, first.url],
      [oauth2, first.url],
      [first, oauth2.url],
    ] as const) {
      expect(await receiver.rawWith(`Bearer ${signer.token({ iss })}`)).toBe(INVALID_TOKEN)
      // Under a kid that the other set has as well, the signature is wrong.
      const forged = signer.token(
        { iss },
        { kid: [first, second, oauth2].find(({ url }) => url === iss)?.kid },
      )
      expect(await receiver.rawWith(`Bearer ${forged}`)).toBe(INVALID_TOKEN)
    }
  })

  it('answers without a token as with one policy', async () => {
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(first.policy(), second.policy())),
    })
    expect(await receiver.raw()).toBe(NO_TOKEN)
  })
})

describe('the choice of a policy', () => {
  const reasonOf = async (claims: Record<string, unknown>, issuer = first) => {
    const events: DecisionEvent[] = []
    const onDecision = (event: DecisionEvent): number => events.push(event)
    const auth = authFor(first.policy({ onDecision }), second.policy({ onDecision }))
    await auth.authenticate({ authorization: `Bearer ${issuer.token(claims)}` })
    expect(events).toHaveLength(1)
    const [event] = events
    return event?.outcome === 'accepted' ? 'accepted' : [event?.reason, event?.claim]
  }

  it.each([
    [undefined, ['claim_missing', 'iss']],
    [null, ['claim_invalid', 'iss']],
    [1, ['claim_invalid', 'iss']],
    [{}, ['claim_invalid', 'iss']],
    [[first.url], ['claim_invalid', 'iss']],
    ['', ['claim_invalid', 'iss']],
    [`${first.url}/`, ['claim_invalid', 'iss']],
    ['https://unknown.example', ['claim_invalid', 'iss']],
    ['__proto__', ['claim_invalid', 'iss']],
  ])('by iss %j is %j', async (iss, expected) => {
    expect(await reasonOf({ iss })).toEqual(expected)
  })

  it('goes by the last of two members iss, like the verification', async () => {
    const auth = authFor(first.policy(), second.policy())
    const twice = (one: string, two: string, issuer: typeof first) => {
      const { iss: _, ...rest } = JSON.parse(
        Buffer.from(issuer.token().split('.')[1] ?? '', 'base64url').toString(),
      )
      return `{"iss":${JSON.stringify(one)},${JSON.stringify(rest).slice(1, -1)},"iss":${JSON.stringify(two)}}`
    }
    const { createForge } = await import('../../src/testing/hostile-tokens/forge.js')
    const forge = createForge(first)
    const good = forge.token({ payload: twice(second.url, first.url, first) })
    const bad = forge.token({ payload: twice(first.url, second.url, first) })
    const outcome = async (token: string) =>
      (await auth.authenticate({ authorization: `Bearer ${token}` })).outcome
    expect(await outcome(good)).toBe('accepted')
    expect(await outcome(bad)).toBe('refused')
  })

  it('gives a token with token_type to the default scheme, where both are of one issuer', async () => {
    const auth = authFor(renewed.policy(), old.policy())
    const reason = async (token: string) => {
      const answer = await auth.authenticate({ authorization: `Bearer ${token}` })
      return answer.outcome === 'accepted' ? 'accepted' : answer.reason
    }
    expect(await reason(old.token())).toBe('accepted')
    expect(await reason(renewed.token())).toBe('accepted')
    expect(await reason(old.token({ token_type: undefined }))).toBe('token_type_invalid')
    // The keys of two issuers may have one id.
    const foreign = await reason(renewed.token({ token_type: 'service-access' }))
    expect(foreign).toMatch(/^(?:key_unknown|signature_invalid)$/)
  })

  it('reports a refusal before it to each distinct observer once, and a later one to its own', async () => {
    const told: string[] = []
    const shared = (): unknown => told.push('shared')
    const own = (): unknown => told.push('own')
    const auth = authFor(
      first.policy({ onDecision: shared }),
      second.policy({ onDecision: own }),
      oauth2.policy({ onDecision: shared }),
    )
    await auth.authenticate({})
    expect(told.splice(0)).toEqual(['shared', 'own'])
    await auth.authenticate({ authorization: `Bearer ${second.token()}` })
    expect(told.splice(0)).toEqual(['own'])
    await auth.authenticate({ authorization: `Bearer ${second.token({ aud: 'x' })}` })
    expect(told.splice(0)).toEqual(['own'])
  })
})

describe('the state of several policies', () => {
  it('has a member for each, in their order', async () => {
    const auth = authFor(first.policy(), oauth2.policy({ tokenCache: false }))
    await auth.ready()
    await auth.authenticate({ authorization: `Bearer ${first.token()}` })
    const { policies: states } = auth.health()
    expect(states.map(({ issuer }) => issuer)).toEqual([first.url, oauth2.url])
    expect(states.map(({ keySet }) => keySet.state)).toEqual(['fresh', 'fresh'])
    expect(states.map(({ tokenCache }) => tokenCache?.misses)).toEqual([1, undefined])
  })

  it('is ready once all are, and names the issuer that is not', async () => {
    const broken = await createTestIssuer()
    onTestFinished(() => broken.close())
    broken.down()
    const auth = authFor(first.policy(), broken.policy())
    await expect(auth.ready()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`${broken.url}: `),
    })
    broken.up()
    await expect
      .poll(
        () =>
          auth.ready().then(
            () => 'ready',
            () => 'not yet',
          ),
        { timeout: 20_000 },
      )
      .toBe('ready')
    // While one is down, the other accepts.
    broken.down()
    const answer = await auth.authenticate({ authorization: `Bearer ${first.token()}` })
    expect(answer.outcome).toBe('accepted')
  })
})

describe('a list of policies', () => {
  const nine = Array.from({ length: 9 }, (_, index) =>
    first.policy({ issuer: `https://i${index}` }),
  )

  it.each<[string, readonly unknown[], RegExp]>([
    ['is empty', [], /2 to 8/],
    ['has one', [first.policy()], /2 to 8/],
    ['has nine', nine, /2 to 8/],
    ['has a faulty one', [first.policy(), { ...second.policy(), audience: '' }], /\[1\].*audience/],
    ['has nothing in it', [first.policy(), undefined], /\[1\]/],
    ['has two of one issuer', [first.policy(), second.policy(), first.policy()], /\[0\] and \[2\]/],
    [
      'has two OAuth 2.0 policies of one issuer',
      [oauth2.policy(), oauth2.policy({ audience: 'x' })],
      /\[0\] and \[1\]/,
    ],
  ])('that %s is a TypeError', (_, list, message) => {
    const make = () => serviceAuth(list as readonly AnyPolicy[])
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})

describe('a move from one core to another under load', () => {
  it('refuses nobody', async () => {
    const receiver = await startReceiver({
      express: EXPRESS_MAJORS[1]?.express as never,
      mount: (app) => app.use(authFor(first.policy(), second.policy())),
    })
    let current = first
    const statuses: number[] = []
    const caller = async (): Promise<void> => {
      for (let call = 0; call < 60; call += 1) {
        statuses.push((await receiver.call(current.token())).status)
        if (statuses.length === 200) current = second
        if (statuses.length === 400) second.rotate()
      }
    }
    await Promise.all(Array.from({ length: 10 }, caller))
    expect(statuses).toHaveLength(600)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
  })
})
