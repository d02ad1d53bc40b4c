import type { KeySet } from '../key-set/key-set.js'
import { remoteKeySet } from '../key-set/remote-key-set.js'
import type { ServiceAuthPolicy } from '../policy/policy.js'
import { compactToken, rs256 } from './compact-token.js'
import { createKeyRing, type KeyRing } from './issuer-keys.js'
import { inProcessFetch, type Publication, startKeySetServer } from './issuer-server.js'
import { claimsOf, parseSettings, policyOf, type TestIssuerOptions } from './issuer-settings.js'

/** An issuer of service tokens in the process of a test, with keys of its own. */
export interface TestIssuer {
  /** The `iss` of its tokens. */
  readonly url: string
  /** The address of its key set; of no use where `http` is `false`. */
  readonly jwksUri: string
  /** A key set for `policy.keySet`, with HTTP or without; `close()` closes it. */
  readonly keySet: KeySet
  /** The id of the key that signs now. */
  readonly kid: string
  /** The id of the static key that is published beside it. */
  readonly staticKid: string
  /** How often the key set has been asked for, failures included. */
  readonly fetches: number
  /** A policy that accepts `token()`; `overrides` replace its fields. */
  policy(overrides?: Partial<ServiceAuthPolicy>): ServiceAuthPolicy
  /**
   * A signed token (RS256) that `policy()` accepts. `claims` and `header` replace what it holds by
   * default; what is `undefined` there is left out. It is signed with the key that `header.kid`
   * names where the issuer has or had it, otherwise with the current one.
   */
  token(
    claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ): string
  /**
   * A new key signs from now on; the earlier ones stay published. Returns its id. A receiver that has
   * just met many unknown key ids, those of `hostileTokens` say, finds it once its budget of fetches
   * allows one again: give such a test a receiver of its own.
   */
  rotate(): string
  /**
   * Withdraws a key from the key set. Receivers notice at their next refresh, or when a token with
   * an unknown `kid` makes them fetch. Returns whether it was there.
   */
  remove(kid: string): boolean
  /** From now on whoever asks for the key set has his connection cut. */
  down(): void
  /** Ends `down()` and `slow()`; a receiver that has failed to fetch waits for its back-off first. */
  up(): void
  /** From now on the key set answers after so many milliseconds. */
  slow(ms: number): void
  /** Ends the server and the key set. May be called again. */
  close(): Promise<void>
}

const JWKS_PATH = '/auth/jwt/jwks.json'
const MAX_DELAY_MS = 600_000

const rings = new WeakMap<TestIssuer, KeyRing>()

/**
 * The keys of an issuer, for tokens that are worse than `token()` can make them.
 *
 * @throws TypeError when it was not made by `createTestIssuer`.
 */
export function keyRingOf(issuer: TestIssuer): KeyRing {
  const ring = rings.get(issuer)
  if (ring === undefined) throw new TypeError('the issuer must be made by createTestIssuer')
  return ring
}

/**
 * Starts an issuer for tests: its key set on loopback HTTP, a policy that matches it and tokens that
 * match the policy. It holds no process open, and needs no runner and no network beyond loopback.
 *
 * @throws TypeError (as a rejection) when an option is unknown, of the wrong type or out of range.
 */
export async function createTestIssuer(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const settings = parseSettings(options)
  const ring = createKeyRing()
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
  const issuer: TestIssuer = {
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
    token: (claims, header) => tokenOf(ring, { ...claimsOf(url, settings), ...claims }, header),
    rotate: () => ring.rotate().kid,
    remove: (kid) => ring.remove(kid),
    ...controlsOf(publication),
    async close() {
      keySet.close()
      await server?.close()
    },
  }
  rings.set(issuer, ring)
  return issuer
}

function controlsOf(publication: Publication): Pick<TestIssuer, 'down' | 'up' | 'slow'> {
  return {
    down() {
      publication.isDown = true
    },
    up() {
      publication.isDown = false
      publication.delayMs = 0
    },
    slow(ms) {
      if (typeof ms !== 'number' || !(ms >= 0 && ms <= MAX_DELAY_MS)) {
        throw new TypeError(`slow: ms must be a number from 0 to ${MAX_DELAY_MS}`)
      }
      publication.delayMs = ms
    },
  }
}

function tokenOf(
  ring: KeyRing,
  claims: Record<string, unknown>,
  overrides: Readonly<Record<string, unknown>> = {},
): string {
  const header = { kid: ring.current().kid, typ: 'JWT', alg: 'RS256', ...overrides }
  const named = typeof header.kid === 'string' ? ring.find(header.kid) : undefined
  return compactToken(header, claims, rs256((named ?? ring.current()).privateKey))
}
