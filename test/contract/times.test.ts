import type { ServiceAuthPolicy } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'

/** Seconds since the epoch; the clock stands still unless a test sets it. */
const NOW = 1_800_000_000
let now = NOW
const issuer = await createTestIssuer({ clock: () => now * 1000 })
afterAll(() => issuer.close())

type Row = readonly [claims: Record<string, unknown>, status: 200 | 401, at?: number]

describe.each(EXPRESS_MAJORS)('the times of a token, on $major', ({ express }) => {
  /** Judges each row at its moment, new and, where it passed, from the cache. */
  async function expectRows(policy: Partial<ServiceAuthPolicy>, rows: readonly Row[]) {
    now = NOW
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy(policy))),
    })
    const got: Row[] = []
    for (const [claims, , at] of rows) {
      now = NOW
      const token = issuer.token(claims)
      now = at ?? NOW
      const { status } = await receiver.call(token)
      expect((await receiver.call(token)).status).toBe(status)
      got.push([claims, status as 200, ...(at === undefined ? [] : [at])] as unknown as Row)
    }
    expect(got).toEqual(rows)
  }

  it.each([0, 0.5, 5, 60])('exp is exclusive, with a tolerance of %s s', async (tolerance) => {
    await expectRows({ clockToleranceSeconds: tolerance }, [
      [{ exp: NOW + 1 }, 200],
      [{ exp: NOW - tolerance }, 401],
      [{ exp: NOW - tolerance + 0.25 }, 200],
      [{ exp: NOW + 10 }, 200, NOW + 10 + tolerance - 0.001],
      [{ exp: NOW + 10 }, 401, NOW + 10 + tolerance],
      [{ exp: NOW + 10 }, 401, NOW + 10 + tolerance + 0.001],
      [{ exp: NOW + 10.5 }, 200, NOW + 10.25 + tolerance],
    ])
  })

  it.each([0, 0.5, 5, 60])(
    'nbf and iat are inclusive, with a tolerance of %s s',
    async (tolerance) => {
      await expectRows({ clockToleranceSeconds: tolerance }, [
        [{ nbf: NOW + tolerance }, 200],
        [{ nbf: NOW + tolerance + 0.25 }, 401],
        [{ nbf: NOW + tolerance + 0.25 }, 200, NOW + 0.25],
        [{ iat: NOW + tolerance }, 200],
        [{ iat: NOW + tolerance + 0.25 }, 401],
        [{ iat: NOW + tolerance + 0.25 }, 200, NOW + 0.25],
        [{ nbf: -1, iat: NOW }, 200],
      ])
    },
  )

  it('exp may lie as far from iat, and from now, as the policy allows', async () => {
    const maxLifetimeSeconds = 100
    const clockToleranceSeconds = 10
    await expectRows({ maxLifetimeSeconds, clockToleranceSeconds }, [
      [{ iat: NOW, exp: NOW + 110 }, 200],
      [{ iat: NOW, exp: NOW + 110.25 }, 401],
      [{ iat: NOW - 50, exp: NOW + 60 }, 200],
      [{ iat: NOW - 50, exp: NOW + 60.25 }, 401],
      [{ iat: undefined, exp: NOW + 110 }, 200],
      [{ iat: undefined, exp: NOW + 110.25 }, 401],
      [{ iat: NOW + 10, exp: NOW + 110 }, 200],
      [{ iat: NOW + 10, exp: NOW + 110.25 }, 401],
      [{ iat: undefined, exp: NOW + 111 }, 200, NOW + 1],
    ])
  })

  it('a remembered token is judged by the clock as it stands', async () => {
    now = NOW
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy({ maxLifetimeSeconds: 300 }))),
    })
    const token = issuer.token({ exp: NOW + 300, nbf: NOW })
    const statuses: number[] = []
    for (const at of [0, 304.999, 305, 304, -5, -5.001, 0]) {
      now = NOW + at
      statuses.push((await receiver.call(token)).status)
    }
    expect(statuses).toEqual([200, 200, 401, 200, 200, 401, 200])
  })

  it('issuedBefore refuses what was issued before, or says nothing about it', async () => {
    await expectRows({ denylist: { issuedBefore: NOW - 10 } }, [
      [{ iat: NOW - 10 }, 200],
      [{ iat: NOW - 10.25 }, 401],
      [{ iat: undefined }, 401],
      [{ iat: NOW }, 200],
    ])
    await expectRows({ denylist: { issuedBefore: NOW + 1000 } }, [[{}, 401]])
    await expectRows({ denylist: { issuedBefore: 0 } }, [
      [{}, 200],
      [{ iat: undefined }, 401],
    ])
  })
})
