import type { TestIssuer, TestIssuerOptions } from 'express-service-auth/testing'
import { startIssuer } from '../../../src/testing/issuer/issuer.js'
import { takeKey } from './spare-keys.js'

/** As users call it, with keys that are there already. */
export const createTestIssuer = (options: TestIssuerOptions = {}): Promise<TestIssuer> =>
  startIssuer(options, takeKey)
