import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { hash } from '../../base/supported-node.js'

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
