import type { Denial } from '../../base/decision/reason.js'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'

/**
 * How a verifier of ours has `acceptOneOf` refuse a request: given to `next`, it becomes the refusal.
 * Anywhere else it is what it says, a fault of the wiring.
 */
export class CredentialRefused extends ServiceAuthError {
  readonly denial: Denial

  constructor(denial: Denial) {
    super('wrong_wiring', 'the verify of sessionCredential stands outside of acceptOneOf')
    this.denial = denial
  }
}
