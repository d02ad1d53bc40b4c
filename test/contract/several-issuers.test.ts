import express from 'express'
import {
  type DecisionEvent,
  memoryStore,
  type OAuth2Policy,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { hostileTokens } from 'express-service-auth/testing'
import { decodeJwt } from 'jose'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTokenForge } from '../../src/testing/hostile/forge.js'
import { createOAuth2TestIssuer, createTestIssuer } from '../support/issuer/test-issuer.js'
import { manualClock } from '../support/manual-clock.js'
import { startBehind } from '../support/receiver/receiver.js'
import { FORBIDDEN, INVALID_TOKEN, UNAVAILABLE } from '../support/receiver/refusal-bytes.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { ENTRIES } from './entries.js'

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

describe.each(ENTRIES)('serviceAuth with several policies, by $entry', ({ open }) => {
  it('accepts the tokens of each issuer, by the policy of that issuer', async () => {
    const auth = authFor(...policies())
    const receiver = await open(auth, { permissions: 'orders:read' })
    for (const issuer of issuers) {
      const token = issuer.token()
      // New, then remembered.
      expect([await receiver.status(token), await receiver.status(token)]).toEqual([200, 200])
      const without = issuer.token({ permissions: [], scope: '' })
      expect(await receiver.rawWith(`Bearer ${without}`)).toBe(FORBIDDEN)
    }
    const seen = receiver.accepted.map(({ issuer }) => issuer)
    expect(seen).toEqual(issuers.flatMap(({ url }) => [url, url]))
    const caches = auth.health().policies.map(({ tokenCache }) => tokenCache)
    expect(caches).toMatchObject(issuers.map(() => ({ hits: 1, misses: 2 })))
  })

  it('never verifies a token with the key set or the policy of another issuer', async () => {
    const receiver = await open(authFor(first.policy(), second.policy(), oauth2.policy()))
    for (const [signer, of] of [
      [first, second],
      [second, first],
      [oauth2, first],
      [first, oauth2],
    ] as const) {
      const claims = decodeJwt(of.token())
      // The second under a kid that the other set has as well: the signature is wrong.
      for (const header of [{}, { kid: of.kid }]) {
        const forged = signer.token(claims, header)
        expect(await receiver.rawWith(`Bearer ${forged}`)).toBe(INVALID_TOKEN)
      }
    }
  })

  it('keeps callers, ceilings, denylists, caches and clocks of the policies apart', async () => {
    const lists = [new ManualDenylist(), new ManualDenylist()] as const
    const clock = manualClock(Date.now())
    const auth = authFor(
      first.policy({ callers: { billing: ['orders:read'] }, denylist: lists[0], clock }),
      second.policy({ callers: ['billing', 'reporting'], denylist: lists[1], tokenCache: false }),
    )
    const receiver = await open(auth)
    const tokens = [first.token({ jti: 'one' }), second.token({ jti: 'one' })] as const
    const both = async () => [await receiver.status(tokens[0]), await receiver.status(tokens[1])]
    expect(await both()).toEqual([200, 200])
    expect(receiver.accepted.map(({ permissions }) => permissions.size)).toEqual([1, 2])
    expect(await receiver.status(first.token({ sub: 'reporting' }))).toBe(403)
    expect(await receiver.status(second.token({ sub: 'reporting' }))).toBe(200)
    lists[0].deny('tokenIds', 'one')
    expect(await both()).toEqual([401, 200])
    lists[0].isKnown = false
    expect(await receiver.rawWith(`Bearer ${tokens[0]}`)).toBe(UNAVAILABLE)
    expect(await receiver.status(tokens[1])).toBe(200)
    Object.assign(lists[0], { isKnown: true }).allow('tokenIds', 'one')
    expect(await both()).toEqual([200, 200])
    clock.advance(3600)
    expect(await both()).toEqual([401, 200])
    const caches = auth.health().policies.map(({ tokenCache }) => tokenCache?.entries)
    expect(caches).toEqual([expect.any(Number), undefined])
    expect(auth.health().policies.map(({ denylists }) => denylists)).toEqual(
      lists.map((list) => [list.health()]),
    )
  })

  it('uses a token of each issuer once, by the clock of its policy', async () => {
    const clock = manualClock(Date.now() + 3_600_000)
    const late = await createTestIssuer({ clock, issuer: 'https://late.example' })
    onTestFinished(() => late.close())
    const singleUse = memoryStore()
    const receiver = await open(authFor(first.policy(), late.policy()), { singleUse })
    for (const issuer of [first, late]) {
      const token = issuer.token({ jti: 'one' })
      expect([await receiver.status(token), await receiver.status(token)]).toEqual([200, 401])
    }
  })

  it('goes by the last of two members iss, like the verification', async () => {
    const receiver = await open(authFor(first.policy(), second.policy()))
    const forge = createTokenForge(first)
    const twice = (one: string, two: string): string => {
      const { iss: _, ...rest } = decodeJwt(first.token())
      const others = JSON.stringify(rest).slice(1, -1)
      const payload = `{"iss":${JSON.stringify(one)},${others},"iss":${JSON.stringify(two)}}`
      return forge.token({ payload })
    }
    expect(await receiver.status(twice(second.url, first.url))).toBe(200)
    expect(await receiver.status(twice(first.url, second.url))).toBe(401)
  })

  it('reads no token_type where an issuer has one policy', async () => {
    const receiver = await open(authFor(first.policy(), oauth2.policy()))
    expect(await receiver.status(oauth2.token({ token_type: 'service-access' }))).toBe(200)
  })

  it('gives a token with token_type to the default scheme, where both are of one issuer', async () => {
    const reasons: unknown[] = []
    const onDecision = (event: DecisionEvent): unknown =>
      reasons.push(event.outcome === 'accepted' ? event.outcome : event.reason)
    const auth = authFor(renewed.policy({ onDecision }), old.policy({ onDecision }))
    const receiver = await open(auth)
    const statuses = [
      await receiver.status(old.token()),
      await receiver.status(renewed.token()),
      await receiver.status(old.token({ token_type: undefined })),
      await receiver.status(old.token({ token_type: null })),
      // The keys of two issuers may have one id.
      await receiver.status(renewed.token({ token_type: 'service-access' })),
    ]
    expect(statuses).toEqual([200, 200, 401, 401, 401])
    const [ofOld, ofNew, ofNone, ofNull, ofForged] = reasons
    expect([ofOld, ofNew]).toEqual(['accepted', 'accepted'])
    expect([ofNone, ofNull]).toEqual(['token_type_invalid', 'claim_invalid'])
    expect(ofForged).toMatch(/^(?:key_unknown|signature_invalid)$/)
  })
})

describe.each(ENTRIES)('the observers of several policies, by $entry', ({ open }) => {
  it('hear of a refusal before a policy is chosen once each, and of a later decision alone', async () => {
    const told: string[] = []
    const shared = (): unknown => told.push('shared')
    const own = (): unknown => told.push('own')
    const auth = authFor(
      first.policy({ onDecision: shared }),
      second.policy({ onDecision: own }),
      oauth2.policy({ onDecision: shared }),
    )
    const receiver = await open(auth)
    const good = `Authorization: Bearer ${second.token()}`
    const bad = `Authorization: Bearer ${second.token({ aud: 'x' })}`
    const unread = ['Basic x', `Bearer ${'x'.repeat(8193)}`, 'Bearer x.y.z', 'Bearer e30.e30.e30']
    const unchosen = [[], [good, good], ...unread.map((value) => [`Authorization: ${value}`])]
    for (const headers of unchosen) {
      await receiver.raw({ headers })
      expect(told.splice(0)).toEqual(['shared', 'own'])
    }
    for (const line of [good, good, bad]) {
      await receiver.raw({ headers: [line] })
      expect(told.splice(0)).toEqual(['own'])
    }
  })
})

it.each([
  ['a service issuer', second],
  ['an OAuth 2.0 issuer', oauth2],
])('several policies refuse the hostile tokens of %s', async (_, issuer) => {
  const auth = authFor(first.policy(), second.policy(), oauth2.policy())
  for (const { name, authorization, expect: status, orElse } of hostileTokens(issuer)) {
    const answer = await auth.authenticate({ authorization })
    expect([status, orElse], name).toContain('status' in answer && answer.status)
  }
})

it.each<[string, unknown, readonly string[]]>([
  ['absent', undefined, ['claim_missing', 'iss']],
  ['null', null, ['claim_invalid', 'iss']],
  ['a list', [first.url], ['claim_invalid', 'iss']],
  ['a known one with a slash', `${first.url}/`, ['claim_invalid', 'iss']],
  ['unknown', 'https://unknown.example', ['claim_invalid', 'iss']],
  ['__proto__', '__proto__', ['claim_invalid', 'iss']],
])('several policies refuse an iss that is %s, and tell each observer once', async (...row) => {
  const [, iss, [reason, claim]] = row
  const told: [string, DecisionEvent][] = []
  const shared = (event: DecisionEvent): unknown => told.push(['shared', event])
  const own = (event: DecisionEvent): unknown => told.push(['own', event])
  const auth = authFor(
    first.policy({ onDecision: shared }),
    second.policy({ onDecision: own }),
    oauth2.policy({ onDecision: shared }),
  )
  await auth.authenticate({ authorization: `Bearer ${first.token({ iss })}` })
  const event = expect.objectContaining({ outcome: 'refused', status: 401, reason, claim })
  expect(told).toEqual([
    ['shared', event],
    ['own', event],
  ])
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

describe('close of several policies', () => {
  it('closes every key set of their own', async () => {
    const auth = authFor(first.policy(), oauth2.policy())
    auth.close()
    await expect(auth.ready()).rejects.toMatchObject({ code: 'unavailable' })
    for (const issuer of [first, oauth2]) {
      const answer = await auth.authenticate({ authorization: `Bearer ${issuer.token()}` })
      expect(answer).toMatchObject({ reason: 'key_set_unavailable' })
    }
  })
})

it.each([
  ['from one core to another', first, second],
  ['from the old scheme to OAuth 2.0', old, renewed],
])('a move %s under load refuses nobody', async (_, before, after) => {
  const auth = authFor(before.policy(), after.policy())
  const receiver = await startBehind(express, auth)
  let current: typeof before | typeof after = before
  const statuses: number[] = []
  const caller = async (): Promise<void> => {
    for (let call = 0; call < 30; call += 1) {
      statuses.push((await receiver.call(current.token())).status)
      if (statuses.length === 100) current = after
      if (statuses.length === 200) after.rotate()
    }
  }
  await Promise.all(Array.from({ length: 10 }, caller))
  expect(statuses).toEqual(Array(300).fill(200))
  expect(auth.health().policies[1]?.keySet.keys).toContain(after.kid)
})
