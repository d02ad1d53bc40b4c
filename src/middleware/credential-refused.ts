import { ServiceAuthError } from '../decision/fault.js'
import type { Denial } from '../decision/reason.js'

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
