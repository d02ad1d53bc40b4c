import { isIP } from 'node:net'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'

/** Facts about a server from a TLS handshake. */
export interface TlsFacts {
  readonly protocol: string
  /** Seconds since the epoch. */
  readonly validUntil: number
  readonly issuer: string
  /** Node's error code if it does not trust the certificate. */
  readonly fault?: string
}

const HTTPS_PORT = 443
const TIMEOUT_MS = 3000

/**
 * Makes a TLS handshake with the server of an `https:` address and sends nothing else, because
 * `fetch` does not expose the certificate. Resolves to `undefined` if it gets no certificate within
 * 3 s.
 */
export function tlsHandshake(address: string): Promise<TlsFacts | undefined> {
  const { hostname, port } = new URL(address)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: port === '' ? HTTPS_PORT : Number(port),
      ...(isIP(host) === 0 && { servername: host }),
      // An untrusted certificate must be shown too. Nothing is sent on this connection.
      rejectUnauthorized: false,
    })
    const end = (facts?: TlsFacts): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(facts)
    }
    const timer = setTimeout(end, TIMEOUT_MS)
    socket.once('secureConnect', () => end(factsOf(socket)))
    socket.on('error', () => end())
    socket.once('close', () => end())
  })
}

function factsOf(socket: TLSSocket): TlsFacts | undefined {
  const certificate = socket.getPeerCertificate()
  const validUntil = Date.parse(certificate.valid_to) / 1000
  if (!Number.isFinite(validUntil)) return undefined
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    validUntil,
    issuer: nameOf(certificate.issuer),
    ...(!socket.authorized && { fault: codeOf(socket.authorizationError) }),
  }
}

const MAX_NAME_LENGTH = 200

function nameOf(issuer: PeerCertificate['issuer'] | undefined): string {
  const parts = ['CN', 'O'].flatMap((field) => issuer?.[field as 'CN' | 'O'] ?? [])
  return parts.length === 0 ? 'unnamed' : parts.join(', ').slice(0, MAX_NAME_LENGTH)
}

/** Node's types say `Error`, but it is the code as a string, or an `Error` that has a code. */
function codeOf(error: unknown): string {
  if (typeof error === 'string') return error
  return (error as NodeJS.ErrnoException | null)?.code ?? 'not trusted'
}
