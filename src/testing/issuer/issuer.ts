import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import type { TimerOptions } from 'node:timers'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { readClock } from '../../base/clock.js'
import { sentMethod } from '../../base/fetch.js'
import {
  flag,
  functionOf,
  integerBetween,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { KeySet } from '../../verification/key-set/key-set.js'
import { remoteKeySet } from '../../verification/key-set/remote-key-set.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { type BoundToken, createProof, createProofKey } from './bound-token.js'
import { compactToken, rs256 } from './compact-token.js'
import { createKeyRing, createSigningKey, type KeyRing, type SigningKey } from './issuer-keys.js'
import { delayOf, serveOnLoopback } from './loopback.js'

/** Options of `createTestIssuer`, for its policy and the default content of its tokens. */
export interface TestIssuerOptions {
  /**
   * The kind of its tokens: `'service'` as the core signs them, or `'oauth2'` for access tokens of RFC
   * 9068 with the permissions in `scope`. Default: `'service'`.
   */
  readonly tokens?: 'service' | 'oauth2' | undefined
  /** `iss`. Default: the address of the key set's server, or `https://issuer.test` without one. */
  readonly issuer?: string | undefined
  /** `aud`. Default: `orders`. */
  readonly audience?: string | undefined
  /** `source`, of service tokens only. Default: `microservice`. */
  readonly source?: string | undefined
  /** `token_type`, of service tokens only. Default: `service-access`. */
  readonly tokenType?: string | undefined
  /** `sub`, the one approved caller. Default: `billing`. */
  readonly caller?: string | undefined
  /** `permissions`, or the names in `scope`. Default: `orders:read` and `orders:write`. */
  readonly permissions?: readonly string[] | undefined
  /** Seconds from `iat` to `exp`, 1 to 604,800. Default: 300. */
  readonly lifetimeSeconds?: number | undefined
  /** Whether loopback HTTP serves the key set; if not, the policy has `keySet`. Default: `true`. */
  readonly http?: boolean | undefined
  /** The `max-age` of the key set in seconds, 0 to 604,800. Default: 3600. */
  readonly maxAgeSeconds?: number | undefined
  /** The time in milliseconds since the epoch, also for the policy. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined
}

const schema = lazy(() =>
  optionsObject({
    tokens: z
      .enum(['service', 'oauth2'], { error: "must be 'service' or 'oauth2'" })
      .default('service'),
    issuer: nonEmptyString().optional(),
    audience: nonEmptyString().default('orders'),
    source: nonEmptyString().default('microservice'),
    tokenType: nonEmptyString().default('service-access'),
    caller: nonEmptyString().default('billing'),
    permissions: z
      .array(nonEmptyString(), { error: 'must be a list of strings' })
      .default(['orders:read', 'orders:write']),
    lifetimeSeconds: numberBetween(1, 604_800, 'seconds').default(300),
    http: flag().default(true),
    maxAgeSeconds: integerBetween(0, 604_800).default(3600),
    clock: functionOf<() => number>().optional(),
  }),
)

/** An issuer of tokens, with its own keys, in the process of a test. */
export interface TestIssuer<Policy extends AnyPolicy = ServiceAuthPolicy> {
  /** The `iss` of its tokens. */
  readonly url: string
  /** The address of its key set. Nothing listens there if `http` is `false`. */
  readonly jwksUri: string
  /** A `remoteKeySet` for `policy.keySet`; works without HTTP too. `close()` closes it. */
  readonly keySet: KeySet
  /** The id of the current signing key. */
  readonly kid: string
  /** The id of the static key, which is published with the signing keys. */
  readonly staticKid: string
  /** The number of requests for the key set, including failed ones. */
  readonly fetches: number
  /** A policy that accepts `token()`; `overrides` replace its fields. */
  policy(overrides?: Partial<Policy>): Policy
  /**
   * A signed token (RS256) that `policy()` accepts. `claims` and `header` replace its defaults;
   * `undefined` removes a member. It is signed by the issuer's key that `header.kid` names, even if that
   * key was removed; otherwise by the current key.
   */
  token(
    claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ): string
  /** A token that is bound to a new key (`cnf.jkt`), and its proofs. `claims` as in `token()`. */
  boundToken(claims?: Readonly<Record<string, unknown>>): BoundToken
  /**
   * Makes a new key, which signs from now on; the earlier ones stay published. Returns its id.
   * After tokens with unknown key ids (`hostileTokens` has some), a receiver may answer 503 for up to
   * 10 s before it finds it, because it limits the fetches that they cause: give such a test its own receiver.
   */
  rotate(): string
  /**
   * Withdraws a key from the key set. Receivers notice at their next refresh, or when a token with
   * an unknown `kid` makes them fetch. Returns whether it was there.
   */
  remove(kid: string): boolean
  /** From now on, cuts the connection of every request for the key set. */
  down(): void
  /** Ends `down()` and `slow()`. A receiver whose fetch failed first waits for its back-off. */
  up(): void
  /** From now on, the key set answers after this many milliseconds. */
  slow(ms: number): void
  /** Closes the server and the key set. Safe to call twice. */
  close(): Promise<void>
}

const JWKS_PATH = '/auth/jwt/jwks.json'

type AnyPolicy = ServiceAuthPolicy | OAuth2Policy

const rings = new WeakMap<object, KeyRing>()

/**
 * The keys of an issuer, for tokens that `token()` cannot make.
 *
 * @throws TypeError if it was not made by `createTestIssuer`.
 */
export function keyRingOf(issuer: TestIssuer<AnyPolicy>): KeyRing {
  const ring = rings.get(issuer)
  if (ring === undefined)
    throw new TypeError('the issuer must be made by createTestIssuer, and awaited')
  return ring
}

/**
 * Starts an issuer for tests: its key set on loopback HTTP, a policy that matches it and tokens
 * that match the policy. It does not keep the process alive, and works with any test runner.
 *
 * @throws TypeError (as a rejection) if an option is unknown, of the wrong type or out of range.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { serviceAuth } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const issuer = await createTestIssuer()
 * const app = express().use(serviceAuth(issuer.policy()))
 * const authorization = `Bearer ${issuer.token({ sub: 'billing', permissions: ['orders:read'] })}`
 * await issuer.close()
 * ```
 */
export function createTestIssuer(
  options: TestIssuerOptions & { readonly tokens: 'oauth2' },
): Promise<TestIssuer<OAuth2Policy>>
export function createTestIssuer(options?: TestIssuerOptions): Promise<TestIssuer>
export async function createTestIssuer(
  options: TestIssuerOptions = {},
): Promise<TestIssuer<AnyPolicy>> {
  return startIssuer(options, createSigningKey)
}

/** Like `createTestIssuer`, with keys that `makeKey` makes. */
export async function startIssuer<Policy extends AnyPolicy>(
  options: TestIssuerOptions,
  makeKey: (kid: string) => SigningKey,
): Promise<TestIssuer<Policy>> {
  const settings = parseOptions('createTestIssuer options', schema, options)
  const ring = createKeyRing(makeKey)
  const { document } = ring
  const { maxAgeSeconds } = settings
  const publication = { document, maxAgeSeconds, isDown: false, delayMs: 0, fetches: 0 }
  const server = settings.http ? await serveOnLoopback(serving(publication)) : undefined
  const url = settings.issuer ?? server?.url ?? 'https://issuer.test'
  const jwksUri = `${server?.url ?? 'https://issuer.test'}${JWKS_PATH}`
  const keySet = remoteKeySet({
    jwksUri,
    clock: settings.clock,
    ...(server === undefined && { fetch: inProcessFetch(publication) }),
  })
  const typ = settings.tokens === 'oauth2' ? 'at+jwt' : 'JWT'
  const issuer: TestIssuer<AnyPolicy> = {
    url,
    jwksUri,
    keySet,
    get kid() {
      return ring.current().kid
    },
    staticKid: ring.staticKey.kid,
    get fetches() {
      return publication.fetches
    },
    policy: (overrides) => policyOf({ url, jwksUri, keySet, ...settings }, overrides),
    token: (claims, header) =>
      tokenOf(ring, { ...claimsOf(url, settings), ...claims }, { typ, ...header }),
    boundToken(claims) {
      const key = createProofKey()
      const token = issuer.token({ cnf: { jkt: key.thumbprint }, ...claims })
      const { clock = Date.now } = settings
      return {
        token,
        proof: ({ method, url: address }) =>
          createProof(key, {
            token,
            method: sentMethod(method),
            url: address,
            now: readClock(clock) / 1000,
          }),
      }
    },
    rotate: () => ring.rotate().kid,
    remove: (kid) => ring.remove(kid),
    down() {
      publication.isDown = true
    },
    up() {
      publication.isDown = false
      publication.delayMs = 0
    },
    slow(ms) {
      publication.delayMs = delayOf('slow', ms)
    },
    async close() {
      keySet.close()
      await server?.stop()
    },
  }
  rings.set(issuer, ring)
  // The option `tokens` decides on the kind of its policies, which the caller names.
  return issuer as unknown as TestIssuer<Policy>
}

/** The key set as it is published now. */
interface Publication {
  document(): object
  maxAgeSeconds: number
  isDown: boolean
  delayMs: number
  fetches: number
}

/** Serves the key set at every path that ends in `/jwks.json`. */
const serving =
  (publication: Publication): RequestListener =>
  (request, response) => {
    if (!request.url?.endsWith('/jwks.json')) response.writeHead(404).end()
    else {
      published(publication, { ref: false })
        .then(({ body, headers }) => response.writeHead(200, headers).end(body))
        .catch(() => response.destroy())
    }
  }

/** Answers like the server, without a network. */
const inProcessFetch =
  (publication: Publication): typeof globalThis.fetch =>
  async (_input, init) => {
    // The wait keeps the process alive, as the socket of a real `fetch` does.
    const { body, headers } = await published(
      publication,
      init?.signal ? { signal: init.signal } : {},
    )
    return new Response(body, { headers })
  }

/** Counts the request and waits. @throws Error (as a rejection) if the key set is down. */
async function published(publication: Publication, wait: TimerOptions) {
  publication.fetches += 1
  if (publication.delayMs > 0) await sleep(publication.delayMs, undefined, wait)
  if (publication.isDown) throw new Error('the key set of the test issuer is down')
  const headers = {
    'content-type': 'application/json',
    'cache-control': `max-age=${publication.maxAgeSeconds}, must-revalidate`,
  }
  return { body: JSON.stringify(publication.document()), headers }
}

function tokenOf(
  ring: KeyRing,
  claims: Record<string, unknown>,
  members: Readonly<Record<string, unknown>>,
): string {
  const header = { kid: ring.current().kid, alg: 'RS256', ...members }
  const named = typeof header.kid === 'string' ? ring.find(header.kid) : undefined
  return compactToken(header, claims, rs256((named ?? ring.current()).privateKey))
}

type IssuerSettings = z.output<ReturnType<typeof schema>>

interface Published {
  readonly url: string
  readonly jwksUri: string
  readonly keySet: KeySet
}

/** Returns a policy that accepts the issuer's tokens, unless an override changes that. */
function policyOf(
  settings: IssuerSettings & Published,
  overrides: Partial<ServiceAuthPolicy | OAuth2Policy> = {},
): ServiceAuthPolicy | OAuth2Policy {
  const { url, audience, caller, http, jwksUri, keySet, clock } = settings
  const overridesKeySet = ['keySet', 'jwksUri', 'apiBasePath'].some((name) =>
    Object.hasOwn(overrides, name),
  )
  const { tokens, source, tokenType } = settings
  const policy = {
    issuer: url,
    audience,
    ...(tokens === 'oauth2'
      ? { tokens, permissionsClaim: 'scope' as const }
      : { source, tokenType }),
    callers: [caller],
    ...(clock !== undefined && { clock }),
    ...(!overridesKeySet && (http ? { jwksUri } : { keySet })),
    ...overrides,
  }
  return policy as ServiceAuthPolicy | OAuth2Policy
}

/** Returns the claims of a token that the policy accepts, with a new `jti` for each call. */
function claimsOf(url: string, settings: IssuerSettings): Record<string, unknown> {
  const { audience, caller, lifetimeSeconds } = settings
  const now = Math.floor(readClock(settings.clock ?? Date.now) / 1000)
  return {
    iss: url,
    aud: audience,
    sub: caller,
    ...kindClaims(settings),
    iat: now,
    exp: now + lifetimeSeconds,
    jti: randomUUID(),
  }
}

function kindClaims(settings: IssuerSettings): Record<string, unknown> {
  const { tokens, source, tokenType, caller, permissions } = settings
  return tokens === 'oauth2'
    ? { client_id: caller, scope: permissions.join(' ') }
    : { source, token_type: tokenType, permissions }
}
