// Policies that must not compile.
import { type LiveDenylist, serviceAuth } from 'express-service-auth'

const complete = {
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
}
const { issuer, audience, source, tokenType, callers } = complete
serviceAuth(complete)

const jwksUri = 'https://api.example.com/auth/jwt/jwks.json'
const client = { issuer, audience, callers, jwksUri }
serviceAuth({ ...client, tokens: 'oauth2', permissionsClaim: 'scope' })
const oauth2 = { ...client, tokens: 'oauth2' } as const
serviceAuth({ ...oauth2, permissionsClaim: 'scope', accessTokenType: 'any' })
serviceAuth([complete, { ...oauth2, permissionsClaim: 'scope' }])
const several = serviceAuth([complete, { ...client, tokens: 'oauth2', permissionsClaim: 'scp' }])
export const states: readonly string[] = [
  serviceAuth(complete).health().keySet.state,
  ...several.health().policies.map((one) => `${one.issuer}: ${one.keySet.state}`),
]

const live: LiveDenylist = {
  lists: (of) => ({ keys: new Set([of]), callers: new Set(), tokenIds: new Set() }),
  ready: async () => {},
  health: () => ({ state: 'fresh', entries: 1, version: 1 }),
  close() {},
}
for (const denylist of [live, [live], [{ keys: ['k'] }, live], { keys: ['k'] }, undefined]) {
  serviceAuth({ ...complete, denylist })
}

// @ts-expect-error a policy is required
serviceAuth()
// @ts-expect-error issuer is missing
serviceAuth({ audience, source, tokenType, callers })
// @ts-expect-error audience is missing
serviceAuth({ issuer, source, tokenType, callers })
// @ts-expect-error source is missing
serviceAuth({ issuer, audience, tokenType, callers })
// @ts-expect-error tokenType is missing
serviceAuth({ issuer, audience, source, callers })
// @ts-expect-error callers is missing
serviceAuth({ issuer, audience, source, tokenType })

// @ts-expect-error one caller is a list of one
serviceAuth({ ...complete, callers: 'billing' })
// @ts-expect-error a ceiling is a list
serviceAuth({ ...complete, callers: { billing: 'orders:read' } })
// @ts-expect-error nothing security-relevant is a regular expression
serviceAuth({ ...complete, callers: [/billing/] })
// @ts-expect-error one audience
serviceAuth({ ...complete, audience: ['orders', 'payments'] })
// @ts-expect-error an address is a string
serviceAuth({ ...complete, jwksUri: new URL('https://api.example.com/jwks.json') })
// @ts-expect-error 'refuse' or 'accept'
serviceAuth({ ...complete, staticKeys: true })
// @ts-expect-error seconds are a number
serviceAuth({ ...complete, clockToleranceSeconds: '5' })
// @ts-expect-error a list of denylists, not of keys
serviceAuth({ ...complete, denylist: ['x'] })
// @ts-expect-error a live denylist has four functions
serviceAuth({ ...complete, denylist: { lists: () => undefined } })
// @ts-expect-error what is denied is said at once, from memory
serviceAuth({ ...complete, denylist: { ...live, lists: async () => undefined } })
// @ts-expect-error sets, for a list is searched from end to end
serviceAuth({ ...complete, denylist: { ...live, lists: () => ({ keys: [], callers: [] }) } })
// @ts-expect-error a key set is made by remoteKeySet
serviceAuth({ ...complete, keySet: { keys: [] } })
// @ts-expect-error the clock gives milliseconds, not a Date
serviceAuth({ ...complete, clock: () => new Date() })
// @ts-expect-error permissionsClaim is missing
serviceAuth({ ...client, tokens: 'oauth2' })
// @ts-expect-error no such claim
serviceAuth({ ...client, tokens: 'oauth2', permissionsClaim: 'scopes' })
// @ts-expect-error a member of the default scheme
serviceAuth({ ...client, tokens: 'oauth2', permissionsClaim: 'scope', source })
// @ts-expect-error a member of the other scheme
serviceAuth({ ...complete, permissionsClaim: 'scope' })
// @ts-expect-error each policy has a key set of its own
several.health().keySet
// @ts-expect-error an unknown option
serviceAuth({ ...complete, algorithms: ['none'] })
