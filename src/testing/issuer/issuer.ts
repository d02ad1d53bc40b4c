import { readClock } from '../../base/clock.js'
import { sentMethod } from '../../base/fetch.js'
import type { KeySet } from '../../verification/key-set/key-set.js'
import { remoteKeySet } from '../../verification/key-set/remote-key-set.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { type BoundToken, createProof, createProofKey } from './bound-token.js'
import { compactToken, rs256 } from './compact-token.js'
import { createKeyRing, createSigningKey, type KeyRing, type SigningKey } from './issuer-keys.js'
import { inProcessFetch, startKeySetServer } from './issuer-server.js'
import {
  claimsOf,
  parseIssuerSettings,
  policyOf,
  type TestIssuerOptions,
} from './issuer-settings.js'
import { delayOf } from './loopback.js'

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
  if (ring === undefined) throw new TypeError('the issuer must be made by createTestIssuer')
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
export function startIssuer(
  options: TestIssuerOptions & { readonly tokens: 'oauth2' },
  makeKey: (kid: string) => SigningKey,
): Promise<TestIssuer<OAuth2Policy>>
export function startIssuer(
  options: TestIssuerOptions,
  makeKey: (kid: string) => SigningKey,
): Promise<TestIssuer>
export async function startIssuer(
  options: TestIssuerOptions,
  makeKey: (kid: string) => SigningKey,
): Promise<TestIssuer<AnyPolicy>> {
  const settings = parseIssuerSettings(options)
  const ring = createKeyRing(makeKey)
  const { document } = ring
  const { maxAgeSeconds } = settings
  const publication = { document, maxAgeSeconds, isDown: false, delayMs: 0, fetches: 0 }
  const server = settings.http ? await startKeySetServer(publication) : undefined
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
      await server?.close()
    },
  }
  rings.set(issuer, ring)
  return issuer
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
