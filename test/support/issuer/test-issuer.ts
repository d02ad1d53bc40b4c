import type { OAuth2Policy, ServiceAuthPolicy } from 'express-service-auth'
import type { TestIssuer, TestIssuerOptions } from 'express-service-auth/testing'
import { startIssuer } from '../../../src/testing/issuer/issuer.js'
import { takeKey } from './spare-keys.js'

/** `createTestIssuer` of the package, with spare keys instead of new ones. */
export const createTestIssuer = (options: TestIssuerOptions = {}): Promise<TestIssuer> =>
  startIssuer<ServiceAuthPolicy>(options, takeKey)

/** An issuer of OAuth 2.0 access tokens, with spare keys, too. */
export const createOAuth2TestIssuer = (
  options: TestIssuerOptions = {},
): Promise<TestIssuer<OAuth2Policy>> =>
  startIssuer<OAuth2Policy>({ ...options, tokens: 'oauth2' }, takeKey)
