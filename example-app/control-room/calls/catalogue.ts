import {
  createTestIssuer,
  type HostileToken,
  hostileTokens,
  type TestIssuer,
  type TestIssuerOptions,
} from 'express-service-auth/testing'
import type { IdentityCore } from '../../identity-core/identity-core.js'
import type { PublicJwk } from '../../identity-core/signing-key.js'
import type { HostileTokenCase } from '../protocol.js'

/** The package's own hostile tokens, signed by keys that the core publishes beside its own. */
export interface Catalogue {
  readonly cases: readonly HostileTokenCase[]
  /** The ids of its keys. */
  readonly kids: readonly string[]
  /** A case by its name, at most a minute old. */
  find(name: string): HostileToken | undefined
  close(): Promise<void>
}

export interface CatalogueOptions {
  readonly core: Pick<IdentityCore, 'issuer' | 'publishAlso'>
  readonly clock?: () => number
  readonly openIssuer?: (options: TestIssuerOptions) => Promise<TestIssuer>
}

/** Some cases are about the moment, and all expire after five minutes. */
const MAX_AGE_MS = 60_000

/** Makes keys and publishes them: before the receivers fetch their key set, or they learn of them late. */
export async function openCatalogue(options: CatalogueOptions): Promise<Catalogue> {
  const { core, clock = Date.now, openIssuer = createTestIssuer } = options
  const issuer = await openIssuer({ issuer: core.issuer, clock })
  const keys = await keysOf(issuer)
  core.publishAlso(keys)
  let madeAt = clock()
  let tokens = byName(issuer)
  return {
    cases: [...tokens.values()].map(({ name, why }) => ({ name, why })),
    kids: keys.map(({ kid }) => kid),
    find(name) {
      if (clock() - madeAt > MAX_AGE_MS) {
        madeAt = clock()
        tokens = byName(issuer)
      }
      return tokens.get(name)
    },
    close: issuer.close,
  }
}

const byName = (issuer: TestIssuer): ReadonlyMap<string, HostileToken> =>
  new Map(hostileTokens(issuer).map((token) => [token.name, token]))

async function keysOf({ jwksUri }: TestIssuer): Promise<readonly PublicJwk[]> {
  const response = await fetch(jwksUri)
  const { keys } = (await response.json()) as { keys: readonly PublicJwk[] }
  return keys
}
