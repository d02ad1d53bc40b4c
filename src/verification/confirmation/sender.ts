import type { WireHeaders } from '../../base/raw-headers.js'
import type { CertificateOf } from './sender-constraint.js'

/** The side of a request that a bound token must match. */
export interface Sender {
  readonly headers: WireHeaders
  /** Returns a `PeerCertificate`, or what the app gives instead: a value of any type. */
  certificate(mtls: true | CertificateOf): unknown
  /**
   * Returns the method and the request target.
   *
   * @throws ServiceAuthError `wrong_wiring` if the app has not given them.
   */
  target(): { readonly method: string; readonly url: string }
}
