import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** Of open connections: to read a certificate costs more than all other checks of a cached token. */
const certificates = new WeakMap<Socket, Uint8Array | undefined>()

/** Returns the client's certificate in DER, `undefined` if there is none. */
export function peerCertificate(socket: Socket): Uint8Array | undefined {
  if (!isTls(socket)) return undefined
  // Before TLS 1.3, a client can do a further handshake, with another certificate (RFC 5246, section 7.4.1.1).
  if (socket.getProtocol() !== 'TLSv1.3') return socket.getPeerX509Certificate()?.raw
  if (!certificates.has(socket)) certificates.set(socket, socket.getPeerX509Certificate()?.raw)
  return certificates.get(socket)
}

/** A connection without TLS has no such function. */
const isTls = (socket: Socket): socket is TLSSocket =>
  typeof (socket as Partial<TLSSocket>).getPeerX509Certificate === 'function'
