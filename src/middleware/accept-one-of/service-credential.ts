import type { Request } from 'express'
import { readAuthorization } from '../../verification/credential/authorization.js'
import type { ServiceIdentity } from '../../verification/policy/identity.js'
import { serviceOf } from '../request-state.js'
import { isServiceAuth, type MultiIssuerAuth, type ServiceAuth } from '../service-auth.js'

/** A choice of `acceptOneOf` without its name. */
export interface ServiceCredential {
  /** Whether the request has an `Authorization` header that is not a session's. */
  presented(request: Request): boolean
  /** The `serviceAuth` passed to `serviceCredential`. */
  readonly verify: ServiceAuth | MultiIssuerAuth
  /** Returns the accepted caller. */
  identity(request: Request): ServiceIdentity
}

/**
 * A service's token, for `acceptOneOf`: every `Authorization` header that is not a session's, verified
 * by this `serviceAuth`.
 *
 * @throws TypeError if `auth` is not a result of `serviceAuth`.
 *
 * @example
 * ```ts
 * import { acceptOneOf, serviceAuth, serviceCredential } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const guard = acceptOneOf([{ name: 'service', ...serviceCredential(auth) }])
 * ```
 */
export function serviceCredential(auth: ServiceAuth | MultiIssuerAuth): ServiceCredential {
  if (!isServiceAuth(auth)) {
    throw new TypeError('serviceCredential: expected a middleware that serviceAuth returned')
  }
  return {
    presented: (request) => readAuthorization(request).type === 'service',
    verify: auth,
    identity: serviceOf,
  }
}
