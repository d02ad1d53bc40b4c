import type { OAuth2Policy } from 'express-service-auth'
import type { TestIssuer, TestIssuerOptions } from 'express-service-auth/testing'
import { startIssuer } from '../../../src/testing/issuer/issuer.js'
import { takeKey } from './spare-keys.js'

/** As users call it, with keys that are there already. */
export const createTestIssuer = (options: TestIssuerOptions = {}): Promise<TestIssuer> =>
  startIssuer(options, takeKey)

/** An issuer of OAuth 2.0 access tokens, likewise. */
export const createOAuth2TestIssuer = (
  options: TestIssuerOptions = {},
): Promise<TestIssuer<OAuth2Policy>> => startIssuer({ ...options, tokens: 'oauth2' }, takeKey)
