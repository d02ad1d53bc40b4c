import { createTestIssuer, type TestIssuer } from 'express-service-auth/testing'

/** One issuer for all tests that need none of their own; its key set answers without a network. */
export const issuer: TestIssuer = await createTestIssuer({ http: false })
