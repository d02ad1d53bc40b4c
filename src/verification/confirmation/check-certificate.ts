import { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ignoreRejection } from '../../base/decision/observers.js'
import type { RefusalReason } from '../../base/decision/reason.js'
import { ServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { hash } from '../../base/supported-node.js'
import type { CertificateOf, Sender } from './sender-constraint.js'

/**
 * Compares the certificate of a request with the thumbprint in its token (RFC 8705, section 3.1). Returns
 * the reason to refuse the request.
 *
 * @throws ServiceAuthError if the policy's `mtls` fails, or it returns anything but a certificate in DER.
 */
export function checkCertificate(
  thumbprint: string,
  mtls: true | CertificateOf,
  sender: Sender,
): RefusalReason | undefined {
  const certificate = readCertificate(mtls, sender)
  if (certificate === undefined) return 'certificate_missing'
  const isOfConnection = certificate instanceof PeerCertificate
  const peer = isOfConnection ? certificate : new PeerCertificate(certificate)
  if (peer.thumbprint === thumbprint) return undefined
  // Only after a mismatch, because parsing the certificate costs more than its digest.
  if (!isOfConnection && !isCertificate(certificate)) throw notCertificate()
  return 'certificate_mismatch'
}

function readCertificate(
  mtls: true | CertificateOf,
  sender: Sender,
): PeerCertificate | Uint8Array | undefined {
  let certificate: unknown
  try {
    certificate = sender.certificate(mtls)
  } catch (error) {
    if (error instanceof ServiceAuthError) throw error
    throw new ServiceAuthError('internal', 'senderConstraint.mtls has failed', { cause: error })
  }
  if (certificate === undefined || certificate instanceof PeerCertificate) return certificate
  if (isDer(certificate)) return certificate
  ignoreRejection(certificate)
  throw notCertificate()
}

const notCertificate = () =>
  wrongWiring(
    'senderConstraint.mtls must return, or authenticate be given, the certificate in DER or undefined',
  )

/** Whether it is a certificate and not, for example, a public key in DER. */
function isCertificate(der: Uint8Array): boolean {
  try {
    return new X509Certificate(der).raw.length === der.length
  } catch {
    return false
  }
}

const SEQUENCE = 0x30

/** Whether it is one DER sequence, as a certificate is. PEM is text, and begins with a hyphen. */
export function isDer(value: unknown): value is Uint8Array {
  if (!(value instanceof Uint8Array) || value[0] !== SEQUENCE) return false
  const lengthByte = value[1] ?? 0
  if (lengthByte < 0x80) return value.length === lengthByte + 2
  const headerLength = 2 + (lengthByte & 0x7f)
  if (headerLength > 6) return false
  const length = value.subarray(2, headerLength).reduce((sum, byte) => sum * 256 + byte, 0)
  return value.length === headerLength + length
}

/** The certificate of a client. */
export class PeerCertificate {
  /** Base64url of the SHA-256 digest of its DER (RFC 8705, section 3.1). */
  readonly thumbprint: string
  constructor(der: Uint8Array) {
    this.thumbprint = hash('sha256', der, 'base64url')
  }
}

/** By open connection, because reading a certificate costs more than all other checks of a cached token. */
const certificates = new WeakMap<Socket, PeerCertificate>()

/** Returns the client's certificate, `undefined` if there is none. */
export function peerCertificate(socket: Socket): PeerCertificate | undefined {
  const known = certificates.get(socket)
  if (known !== undefined || !isTls(socket)) return known
  const der = socket.getPeerX509Certificate()?.raw
  if (der === undefined) return undefined
  const certificate = new PeerCertificate(der)
  // Before TLS 1.3, a client can do a further handshake, with another certificate (RFC 5246, section 7.4.1.1).
  if (socket.getProtocol() === 'TLSv1.3') certificates.set(socket, certificate)
  return certificate
}

/** A connection without TLS has no such function. */
const isTls = (socket: Socket): socket is TLSSocket =>
  typeof (socket as Partial<TLSSocket> | undefined)?.getPeerX509Certificate === 'function'
