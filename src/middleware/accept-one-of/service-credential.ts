import type { Request } from 'express'
import { readAuthorization } from '../../verification/credential/authorization.js'
import type { ServiceIdentity } from '../../verification/policy/identity.js'
import { serviceOf } from '../request-state.js'
import { isServiceAuth, type MultiIssuerAuth, type ServiceAuth } from '../service-auth.js'

/** The part of a choice that says which credential it is. `acceptOneOf` wants a name beside it. */
export interface ServiceCredential {
  /** Whether the request brings an `Authorization` header that is not a session's. */
  presented(request: Request): boolean
  /** The `serviceAuth` that was given. */
  readonly verify: ServiceAuth | MultiIssuerAuth
  /** The caller that it has accepted. */
  identity(request: Request): ServiceIdentity
}

/**
 * A service's token, for `acceptOneOf`: every `Authorization` header that is not a session's, verified
 * by this `serviceAuth`.
 *
 * @throws TypeError if it is given anything but what `serviceAuth` returns.
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
    throw new TypeError('serviceCredential: must be given what serviceAuth returns')
  }
  return {
    presented: (request) => readAuthorization(request).type === 'service',
    verify: auth,
    identity: serviceOf,
  }
}
