import type { TestIssuer } from 'express-service-auth/testing'
import { rawRequest } from '../support/network/raw-exchange.js'

/** An app of a migration page that serves, and the issuer whose tokens it is to verify. */
export interface Scene {
  readonly issuer: TestIssuer
  readonly port: number
}

/** A request as a row of a migration page names it; gives the whole answer, as it came on the wire. */
type MigrationRequest = (scene: Scene) => Promise<string>

const HOUR = 3600
const TEN_YEARS = 10 * 365 * 24 * HOUR

const now = (): number => Math.floor(Date.now() / 1000)

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly headers?: readonly string[]
}

const ask = ({ port }: Scene, { path = '/orders/1', ...asked }: Asked): Promise<string> =>
  rawRequest(port, { path, ...asked })

const bearer = (token: string): string => `Authorization: Bearer ${token}`

const withToken = (scene: Scene, token: string): Promise<string> =>
  ask(scene, { headers: [bearer(token)] })

type Claims = Record<string, unknown> | (() => Record<string, unknown>)

const withClaims =
  (claims: Claims): MigrationRequest =>
  (scene) =>
    withToken(scene, scene.issuer.token(typeof claims === 'function' ? claims() : claims))

/** Requests that leave nothing behind: many can be sent to one app. */
export const REQUESTS: Readonly<Record<string, MigrationRequest>> = {
  'a good token': withClaims({}),
  'no token': (scene) => ask(scene, {}),
  'a token for another audience': withClaims({ aud: 'stock' }),
  '`aud` is a list that holds the audience': withClaims({ aud: ['stock', 'orders'] }),
  'no `exp`': withClaims({ exp: undefined }),
  'a lifetime of ten years': withClaims(() => ({ exp: now() + TEN_YEARS })),
  '`iat` an hour ahead': withClaims(() => ({ iat: now() + HOUR, exp: now() + HOUR + 60 })),
  'another `source`': withClaims({ source: 'browser' }),
  'another `token_type`': withClaims({ token_type: 'session' }),
  'a caller that is not approved': withClaims({ sub: 'stranger' }),
  '`permissions` is the string `orders:read orders:write`': withClaims({
    permissions: 'orders:read orders:write',
  }),
  'a token without the permission': withClaims({ permissions: ['stock:read'] }),
  'signed by a static key of the core': (scene) =>
    withToken(scene, scene.issuer.token({}, { kid: scene.issuer.staticKid })),
  'two `Authorization` headers, the first of them good': (scene) =>
    ask(scene, { headers: [bearer(scene.issuer.token()), bearer('another')] }),
  '`OPTIONS` with `Access-Control-Request-Headers: authorization`, without a token': (scene) =>
    ask(scene, {
      method: 'OPTIONS',
      headers: ['Access-Control-Request-Headers: authorization'],
    }),
  'the token in the query, as `access_token`': (scene) =>
    ask(scene, { path: `/orders/1?access_token=${scene.issuer.token()}` }),
  'a scheme other than `Bearer`': (scene) =>
    ask(scene, { headers: ['Authorization: Basic YmlsbGluZzpzZWNyZXQ='] }),
}

/** Requests that need an app and an issuer of their own. */
export const SEQUENCES: Readonly<Record<string, MigrationRequest>> = {
  'the key set is unreachable': (scene) => {
    scene.issuer.down()
    return withToken(scene, scene.issuer.token())
  },
  'a new key, right after a fetch of the key set': async (scene) => {
    await withToken(scene, scene.issuer.token())
    scene.issuer.rotate()
    return withToken(scene, scene.issuer.token())
  },
  'a withdrawn key, after a token with a newer key': async (scene) => {
    const { issuer } = scene
    const kid = issuer.kid
    await withToken(scene, issuer.token())
    issuer.rotate()
    issuer.remove(kid)
    await withToken(scene, issuer.token())
    return withToken(scene, issuer.token({}, { kid }))
  },
}

export const statusOf = (answer: string): number => Number(answer.split(' ')[1])
