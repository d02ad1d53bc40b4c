import { once } from 'node:events'
import { request } from 'node:http'
import { hostileTokens } from 'express-service-auth/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../../support/receiver/receiver.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

describe('the catalogue', () => {
  it('has one name for each case, the same in every run', async () => {
    const other = await createTestIssuer({ http: false })
    const names = hostileTokens(issuer).map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(hostileTokens(other).map(({ name }) => name)).toEqual(names)
    await other.close()
  })

  it('has no case that the issuer would have made', () => {
    const values = hostileTokens(issuer).map(({ authorization }) => authorization)
    expect(new Set(values).size).toBeGreaterThan(350)
    expect(values).not.toContain(`Bearer ${issuer.token()}`)
  })

  it('says of each case why, and which status it must get', () => {
    for (const hostile of hostileTokens(issuer)) {
      expect(Object.keys(hostile).sort()).toEqual(['authorization', 'expect', 'name', 'why'])
      expect(hostile.why).not.toBe('')
      expect([401, 403]).toContain(hostile.expect)
    }
    const forbidden = hostileTokens(issuer).filter(({ expect }) => expect === 403)
    expect(forbidden.every(({ name }) => name.startsWith('sub '))).toBe(true)
  })

  it('fits the limits that Node has by default, in values that every client can send', async () => {
    const receiver = await startReceiver({
      express: EXPRESS_MAJORS[1]?.express as never,
      mount: (app) => app.use(authFor(issuer.policy())),
    })
    for (const hostile of hostileTokens(issuer)) {
      const { authorization, expect: status, name } = hostile
      expect(() => new Headers({ authorization })).not.toThrow()
      const byFetch = await fetch(receiver.url, { headers: { authorization } })
      await byFetch.text()
      expect(`${name}: ${byFetch.status}`).toBe(`${name}: ${status}`)
      const sent = request(receiver.url, { headers: { authorization } }).end()
      const [response] = await once(sent, 'response')
      response.resume()
      expect(`${name}: ${response.statusCode}`).toBe(`${name}: ${status}`)
    }
  })

  it('is made for an issuer of createTestIssuer only', () => {
    expect(() => hostileTokens({ ...issuer })).toThrow(TypeError)
  })

  it('holds for other settings of the issuer, too', async () => {
    const settings = { issuer: '1', audience: 'ORDERS', source: '_', tokenType: 'é', caller: 'a' }
    const odd = await createTestIssuer({ ...settings, permissions: [], lifetimeSeconds: 3600 })
    const receiver = await startReceiver({
      express: EXPRESS_MAJORS[0]?.express as never,
      mount: (app) => app.use(authFor(odd.policy())),
    })
    for (const { authorization, expect: status, name } of hostileTokens(odd)) {
      const reply = await fetch(receiver.url, { headers: { authorization } })
      expect(`${name}: ${reply.status}`).toBe(`${name}: ${status}`)
    }
    expect((await receiver.call(odd.token())).status).toBe(200)
    await odd.close()
  })
})
