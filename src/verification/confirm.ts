import { readClock } from '../base/clock.js'
import { type Decision, type Denial, deny, type Evidence } from '../base/decision/reason.js'
import { headerValues, type PresentedToken, type WireHeaders } from '../base/raw-headers.js'
import { checkCertificate } from './confirmation/check-certificate.js'
import { checkProof } from './confirmation/check-proof.js'
import type { Confirmation, Sender } from './confirmation/sender-constraint.js'
import type { ClaimsDecision, ValidIdentity } from './policy/check-claims.js'
import type { Policy } from './policy/policy.js'

/**
 * Checks on each request that it has what its token is bound to: the decision on the token may come from the cache, or
 * from another request with the same token. A wrong binding (401) takes precedence over a 403 or 503.
 */
export type Confirm = <Headers extends WireHeaders>(
  decision: ClaimsDecision | Promise<ClaimsDecision>,
  presented: PresentedToken,
  headers: Headers,
  senderOf: (headers: Headers) => Sender,
) => Decision<ValidIdentity> | Promise<Decision<ValidIdentity>>

export function createConfirm(policy: Policy): Confirm {
  const { mtls, dpop } = policy.senderConstraint
  // Without `mtls` and `dpop`, `checkClaims` refuses all bound tokens.
  const isUnconstrained = mtls === undefined && dpop === undefined
  return (decision, presented, headers, senderOf) => {
    if (isUnconstrained && presented.scheme === 'Bearer') return decision
    const sender = senderOf(headers)
    if ('ok' in decision) return confirmNow(decision, presented, sender)
    const currentSender = mtls === true ? withCertificate(sender) : sender
    return decision.then((settled) => confirmNow(settled, presented, currentSender))
  }

  function confirmNow(
    decision: ClaimsDecision,
    presented: PresentedToken,
    sender: Sender,
  ): Decision<ValidIdentity> | Promise<Decision<ValidIdentity>> {
    const binding = decision.ok ? decision.value.binding : decision.binding
    if (binding === undefined) return decision
    if (binding === 'none') {
      return presented.scheme === 'Bearer'
        ? decision
        : deny('confirmation_missing', keyEvidence(decision))
    }
    if (binding.kind === 'dpop') return confirmProof(decision, binding, presented, sender)
    const fault = certificateFault(presented, binding, sender)
    return fault === undefined ? decision : refuse(decision, fault)
  }

  function certificateFault(
    { scheme }: PresentedToken,
    { thumbprint }: Confirmation,
    sender: Sender,
  ) {
    return mtls === undefined || scheme === 'DPoP'
      ? 'confirmation_unsupported'
      : checkCertificate(thumbprint, mtls, sender)
  }

  function confirmProof(
    decision: ClaimsDecision,
    confirmation: Confirmation,
    { token, scheme }: PresentedToken,
    sender: Sender,
  ): Denial | Promise<Decision<ValidIdentity>> {
    if (dpop === undefined) return refuse(decision, 'confirmation_unsupported')
    if (scheme === 'Bearer') return refuse(decision, 'proof_missing')
    const target = sender.target()
    const [proof, ...more] = headerValues(sender.headers, 'dpop')
    if (proof === undefined) return refuse(decision, 'proof_missing')
    if (more.length > 0) return refuse(decision, 'proof_invalid', { member: 'field' })
    const now = readClock(policy.clock) / 1000
    const request = { token, ...target, baseUrls: dpop.baseUrls, now }
    return checkProof(proof, confirmation, request).then((checked) => {
      if (typeof checked === 'string') return refuse(decision, 'proof_invalid', { member: checked })
      return decision.ok ? { ok: true, value: { ...decision.value, proof: checked } } : decision
    })
  }
}

/** Reads the certificate now, because it is gone once the client disconnects. */
function withCertificate(sender: Sender): Sender {
  const certificate = sender.certificate(true)
  return { ...sender, certificate: () => certificate }
}

function refuse(decision: ClaimsDecision, reason: Denial['reason'], evidence?: Evidence): Denial {
  // Only the name of an accepted caller: that of a caller which is not approved could be any text.
  const caller = decision.ok ? { caller: decision.value.identity.name } : undefined
  return deny(reason, { ...caller, ...keyEvidence(decision), ...evidence })
}

function keyEvidence(decision: ClaimsDecision): Evidence {
  const { keyId } = decision.ok ? decision.value.identity : decision.evidence
  return keyId === undefined ? {} : { keyId }
}
