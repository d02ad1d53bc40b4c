import { serviceAuth } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'

async function startIssuer() {
  const issuer = await createTestIssuer()
  onTestFinished(() => issuer.close())
  return issuer
}

describe('serviceAuth', () => {
  it('is ready once the key set has been fetched, and rejects until it could be', async () => {
    const issuer = await startIssuer()
    issuer.down()
    const auth = authFor(issuer.policy())
    await expect(auth.ready()).rejects.toThrow()
    expect(auth.health().keySet).toMatchObject({ state: 'cold', keys: [], lastError: 'network' })
    issuer.up()
    await auth.ready()
    const { keySet } = auth.health()
    expect(keySet).toMatchObject({ state: 'fresh', keys: expect.arrayContaining([issuer.kid]) })
    expect(JSON.parse(JSON.stringify(auth.health()))).toEqual({
      keySet: expect.any(Object),
      tokenCache: { entries: 0, max: 10_000, hits: 0, misses: 0 },
    })
  })

  it('fetches nothing before it is needed, and one set for many first requests', async () => {
    const issuer = await startIssuer()
    for (const { express } of EXPRESS_MAJORS) {
      const before = issuer.fetches
      const auth = authFor(issuer.policy())
      const receiver = await startReceiver({ express, mount: (app) => app.use(auth) })
      expect(issuer.fetches).toBe(before)
      const tokens = Array.from({ length: 50 }, (_, index) => issuer.token({ jti: `${index % 5}` }))
      const replies = await Promise.all(tokens.map((token) => receiver.call(token)))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      expect(issuer.fetches).toBe(before + 1)
    }
  })

  it('is a TypeError without a policy', () => {
    expect(() => (serviceAuth as () => unknown)()).toThrow(TypeError)
  })
})
