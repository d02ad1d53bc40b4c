import type { TestIssuer } from 'express-service-auth/testing'
import { knowToken } from '../secret-search/index.js'
import { createTestIssuer } from './test-issuer.js'

/** One issuer for all tests that need none of their own; its key set answers without a network. */
export const issuer: TestIssuer = await createTestIssuer({ http: false })

const { token } = issuer
Object.assign(issuer, {
  token(...parts: Parameters<TestIssuer['token']>) {
    const made = token(...parts)
    knowToken(made)
    return made
  },
})
