import express5 from 'express'
import {
  type DecisionEvent,
  memoryStore,
  requireIdempotencyKey,
  requireSingleUse,
} from 'express-service-auth'
import { type HostileToken, hostileTokens } from 'express-service-auth/testing'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createOAuth2TestIssuer, createTestIssuer } from '../support/issuer/test-issuer.js'
import { collectEvents } from '../support/observe/channel-events.js'
import { EXPRESS_MAJORS, type ExpressMajor } from '../support/receiver/express-majors.js'
import type { Receiver } from '../support/receiver/open-receiver.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'
import { FORBIDDEN, INVALID_TOKEN, UNAVAILABLE } from '../support/receiver/refusal-bytes.js'
import { serve } from '../support/receiver/serve.js'

const issuer = await createTestIssuer()
/** Made once: an RSA key is made with them. */
const cases = hostileTokens(issuer)
afterAll(() => issuer.close())

const hasBytesOf = ({ expect, orElse }: HostileToken, answer: string | undefined): boolean =>
  answer === (expect === 403 ? FORBIDDEN : INVALID_TOKEN) ||
  (orElse === 503 && answer === UNAVAILABLE)

/** The cases that were not answered with exactly the bytes of their row. */
async function misjudged(receiver: Receiver, cases: readonly HostileToken[]): Promise<string[]> {
  const wrong: string[] = []
  for (const hostile of cases) {
    const answer = await receiver.rawWith(hostile.authorization)
    if (!hasBytesOf(hostile, answer)) wrong.push(`${hostile.name}: ${answer.slice(0, 40)}`)
  }
  return wrong
}

describe('the hostile tokens', () => {
  it.each([
    ['service tokens', EXPRESS_MAJORS[0], createTestIssuer],
    ['OAuth 2.0 access tokens', EXPRESS_MAJORS[1], createOAuth2TestIssuer],
  ] as const)('of %s each get the bytes of their row', async (_, major, create) => {
    const own = await create()
    onTestFinished(() => own.close())
    const store = memoryStore()
    const asked = [vi.spyOn(store, 'consume'), vi.spyOn(store, 'reserve')]
    const auth = authFor(own.policy())
    const { express } = major as ExpressMajor
    const receiver = await startBehind(
      express,
      auth,
      requireSingleUse({ store }),
      express.json(),
      requireIdempotencyKey({ store, operation: 'any' }),
    )
    await auth.ready()
    expect(await misjudged(receiver, hostileTokens(own))).toEqual([])
    expect(receiver.handled).toBe(0)
    expect(receiver.errors).toEqual([])
    for (const spy of asked) expect(spy).not.toHaveBeenCalled()
    // One to become ready and the two that unknown key ids may cause.
    expect(own.fetches).toBeLessThanOrEqual(3)
  })

  it('never make the receiver fetch what they point to', async () => {
    let visits = 0
    const trap = await serve((_request, response) => {
      visits += 1
      response.end('{"keys":[]}')
    })
    onTestFinished(trap.close)
    const receiver = await startBehind(express5, authFor(issuer.policy()))
    const url = `${trap.url}/jwks.json`
    for (const header of [{ jku: url }, { x5u: url }, { kid: url }, { iss: url }]) {
      const answer = await receiver.rawWith(`Bearer ${issuer.token({ iss: url }, header)}`)
      expect(answer).toBe(INVALID_TOKEN)
    }
    expect(visits).toBe(0)
  })

  it('leave nothing of theirs in any event', async () => {
    const events: DecisionEvent[] = []
    const published = collectEvents('decision')
    const receiver = await startBehind(
      express5,
      authFor(issuer.policy({ onDecision: (event) => events.push(event) })),
    )
    for (const { authorization } of cases) await receiver.rawWith(authorization)
    expect(events).toHaveLength(cases.length)
    expect(published).toEqual(events)
    const known = new Set([issuer.kid, issuer.staticKid])
    const claims = 'iss aud sub source token_type permissions exp nbf iat jti cnf'.split(' ')
    for (const [index, event] of events.entries()) {
      const { outcome, reason, status, by, claim, keyId, caller, ...more } = {
        reason: undefined,
        status: undefined,
        ...event,
      }
      expect(more).toEqual({})
      expect(by).toBe('serviceAuth')
      expect(outcome).toBe(status === 503 ? 'undecided' : 'refused')
      expect([cases[index]?.expect, cases[index]?.orElse]).toContain(status)
      expect(reason).toMatch(/^[a-z_]+$/)
      if (claim !== undefined) expect(claims).toContain(claim)
      if (keyId !== undefined) expect(known).toContain(keyId)
      // Only a caller that the core has signed for, and that is named nowhere else than in the 403.
      expect(caller !== undefined).toBe(status === 403)
    }
  })
})
