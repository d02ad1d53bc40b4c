import type { TestIssuer } from 'express-service-auth/testing'
import { knowToken } from '../secret-search/index.js'
import { createTestIssuer } from './test-issuer.js'

/** The issuer that tests share. Its key set answers inside this process, without HTTP. */
export const issuer: TestIssuer = await createTestIssuer({ http: false })

const { token } = issuer
Object.assign(issuer, {
  token(...parts: Parameters<TestIssuer['token']>) {
    const issued = token(...parts)
    knowToken(issued)
    return issued
  },
})
