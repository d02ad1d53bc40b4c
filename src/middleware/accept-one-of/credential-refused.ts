import type { Denial } from '../../base/decision/reason.js'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'

/**
 * Makes `acceptOneOf` refuse the request if a verifier of this package passes it to `next`. Anywhere else it is an
 * error of the wiring.
 */
export class CredentialRefused extends ServiceAuthError {
  readonly denial: Denial

  constructor(denial: Denial) {
    super('wrong_wiring', 'the verify of sessionCredential is used outside acceptOneOf')
    this.denial = denial
  }
}
