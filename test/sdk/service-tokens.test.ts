import type { ServiceAuthPolicy } from 'express-service-auth'
import { decodeJwt } from 'jose'
import { afterAll, describe, expect, it } from 'vitest'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, type Receiver, startBehind, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'
import {
  API_DOMAIN,
  type MintSettings,
  mint,
  openBackendSdk,
  SHORT_VALIDITY_SECONDS,
} from './backend-sdk.js'

const CLAIMS = {
  aud: 'orders',
  sub: 'billing',
  source: 'microservice',
  token_type: 'service-access',
  permissions: [],
}

const core = await startIdentityCore()
const sdk = openBackendSdk(core, 'NONE')
afterAll(() => core.close())

describe.each(EXPRESS_MAJORS)('behind the key set that the SDK serves on $major', (each) => {
  const sdkServer = () => startReceiver({ ...each, mount: (app) => sdk.mount(app) })

  async function receiverBehind(server: Receiver): Promise<Receiver> {
    const policy: ServiceAuthPolicy = {
      issuer: API_DOMAIN,
      jwksUri: `${server.url}/auth/jwt/jwks.json`,
      audience: CLAIMS.aud,
      source: CLAIMS.source,
      tokenType: CLAIMS.token_type,
      callers: [CLAIMS.sub],
    }
    const auth = authFor(policy)
    await auth.ready()
    return startBehind(each.express, auth)
  }

  it('a token of createJWT with a short validity and a dynamic key passes', async () => {
    const receiver = await receiverBehind(await sdkServer())
    expect((await receiver.call(await mint(sdk, CLAIMS))).status).toBe(200)
  })

  it.each<[string, MintSettings]>([
    ['with the defaults, a static key and 100 years,', []],
    ['of a static key', [SHORT_VALIDITY_SECONDS]],
    ['of 100 years', [undefined, false]],
  ])('a token %s is refused', async (_, settings) => {
    const receiver = await receiverBehind(await sdkServer())
    const token = await mint(sdk, CLAIMS, settings)
    expect(await receiver.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
  })

  it('a key that the core makes is found, with the caching that the core asks for', async () => {
    const server = await sdkServer()
    const receiver = await receiverBehind(server)
    const kid = await core.rotate()
    const { headers, text } = await server.call(undefined, { path: '/auth/jwt/jwks.json' })
    expect(JSON.parse(text).keys[0].kid).toBe(kid)
    expect(headers.get('cache-control')).toMatch(/^max-age=\d+, must-revalidate$/)
    expect((await receiver.call(await mint(sdk, CLAIMS))).status).toBe(200)
  })
})

it('the function of the session recipe mints under another issuer', async () => {
  const made = await sdk.sessions.createJWT(CLAIMS, SHORT_VALIDITY_SECONDS, false)
  expect(made.status === 'OK' && decodeJwt(made.jwt).iss).toBe(`${API_DOMAIN}/auth`)
})
