import { lazy, nonEmptyString, optionsObject, parseOptions } from '../../base/options.js'
import { parseBaseUrl } from '../../verification/confirmation/http-uri.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { createProofKey } from '../issuer/bound-token.js'
import type { TestIssuer } from '../issuer/issuer.js'
import { proofHeaderCases } from './header-cases.js'
import type { HostileProof, HostileProofTarget } from './hostile-proof.js'
import { proofPayloadCases } from './payload-cases.js'
import { createProofForge } from './proof-forge.js'
import { proofRequestCases } from './request-cases.js'

const schema = lazy(() =>
  optionsObject({
    baseUrl: nonEmptyString()
      .refine((text) => parseBaseUrl(text) !== undefined, {
        error: 'must be one of the baseUrls of a policy',
      })
      .default('https://orders.test'),
    method: nonEmptyString().default('POST'),
    path: nonEmptyString()
      .regex(/^\/[\w/-]*[a-z][\w/-]*\w$/, {
        error: 'must be a path with letters, such as /orders/4711',
      })
      .default('/orders/4711'),
  }),
)

/**
 * Returns requests with tokens that are bound to a key (DPoP), which a receiver with `senderConstraint.dpop`
 * must refuse. Send them within a minute: their proofs are made now.
 *
 * @throws TypeError if the issuer was not made by `createTestIssuer`, or the target is not valid.
 *
 * @example
 * ```ts
 * import { serviceAuth } from 'express-service-auth'
 * import { createTestIssuer, hostileProofs } from 'express-service-auth/testing'
 *
 * const issuer = await createTestIssuer()
 * const senderConstraint = { dpop: { baseUrls: ['https://orders.test'] } }
 * const auth = serviceAuth(issuer.policy({ senderConstraint }))
 * for (const { name, method, target, headers, replays } of hostileProofs(issuer)) {
 *   if (replays !== undefined) continue
 *   const answer = await auth.authenticate({ rawHeaders: headers }, { method, url: target })
 *   if (answer.outcome === 'accepted') throw new Error(name)
 * }
 * await issuer.close()
 * ```
 */
export function hostileProofs(
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
  target: HostileProofTarget = {},
): HostileProof[] {
  const options = parseOptions('hostileProofs target', schema, target)
  const key = createProofKey()
  const { clock = Date.now } = issuer.policy()
  const forge = createProofForge({
    ...options,
    key,
    token: issuer.token({ cnf: { jkt: key.thumbprint } }),
    unboundToken: issuer.token(),
    now: clock() / 1000,
  })
  return [
    ...proofHeaderCases(forge, issuer),
    ...proofPayloadCases(forge),
    ...proofRequestCases(forge),
  ]
}
