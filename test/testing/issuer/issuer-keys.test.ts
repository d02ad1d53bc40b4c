import { expect, it } from 'vitest'
import {
  createKeyRing,
  createSigningKey,
  publicJwk,
} from '../../../src/testing/issuer/issuer-keys.js'
import { takeKey } from '../../support/issuer/spare-keys.js'

const kidsOf = (ring: ReturnType<typeof createKeyRing>): unknown[] =>
  ring.document().keys.map((key) => (key as { kid: unknown }).kid)

it('a ring publishes a dynamic and a static key, named as the core names them', () => {
  const ring = createKeyRing(takeKey)
  expect(ring.current().kid).toMatch(/^d-\d{13}$/)
  expect(ring.staticKey.kid).toMatch(/^s-[0-9a-f-]{36}$/)
  expect(new Set(kidsOf(ring))).toEqual(new Set([ring.current().kid, ring.staticKey.kid]))
})

it('a published key has no private member', () => {
  const jwk = publicJwk(createSigningKey('k'))
  expect(Object.keys(jwk).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use'])
})
