import { isIP } from 'node:net'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { Unavailable } from '../../base/decision/unavailable.js'
import type { KeySource } from '../../verification/key-set/key-set.js'
import type { Policy } from '../../verification/policy/policy.js'
import type { Findings } from '../output/columns.js'
import { findingsOn, type KeySetFacts, type TlsFacts } from './key-set-findings.js'
import { publishedKeys } from './published-key.js'
import { type KeySetReply, type ObservedResponse, requestKeySet } from './request-key-set.js'

export interface Examination extends KeySetFacts {
  readonly findings: Findings
  /** Has the fetched keys only, so that the check of a token fetches nothing. */
  readonly keySource: KeySource
}

/** Fetches the key set of a policy, and examines the answer. */
export async function examine(policy: Policy): Promise<Examination> {
  if (policy.keySet.kind !== 'own') throw new TypeError('a policy of JSON has no shared key set')
  const { jwksUri } = policy.keySet
  const isTls = new URL(jwksUri).protocol === 'https:'
  const [answer, tls] = await Promise.all([
    requestKeySet(jwksUri),
    isTls ? tlsHandshake(jwksUri) : undefined,
  ])
  const nowMs = Date.now()
  const { outcome, response } = answer
  const facts = {
    answer,
    tls,
    policy,
    nowMs,
    clockOffsetSeconds: response && clockOffset(response),
    keys: outcome.ok ? publishedKeys(outcome.document, outcome.screened, { policy, nowMs }) : [],
  }
  return { ...facts, findings: findingsOn(facts), keySource: toKeySource(answer) }
}

function toKeySource({ outcome }: KeySetReply): KeySource {
  const keys = outcome.ok ? outcome.screened.keys : undefined
  return {
    current: (kid) => keys?.get(kid),
    async find(kid) {
      if (keys === undefined || keys.size === 0) throw new Unavailable('key_set', 'not fetched')
      return keys.get(kid)
    },
  }
}

/** `Date` and `Age` count whole seconds. */
const HEADER_RESOLUTION_MS = 1000

/**
 * Returns how many seconds a server's clock is at least ahead of this machine's by its `Date` header;
 * negative if it is behind. Returns 0 if the duration of the exchange and the rounding to seconds may
 * explain the difference, and `undefined` without a readable `Date`.
 */
export function clockOffset({
  headers,
  requestedAt: askedAt,
  answeredAt,
}: Pick<ObservedResponse, 'headers' | 'requestedAt' | 'answeredAt'>): number | undefined {
  const date = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(date)) return undefined
  // A cache stored the response, with its `Date`, for this long.
  const age = Number(headers.get('age') ?? 0)
  const ageMs = Number.isSafeInteger(age) && age > 0 ? age * 1000 : 0
  const earliest = date + ageMs
  const latest = earliest + HEADER_RESOLUTION_MS + (ageMs === 0 ? 0 : HEADER_RESOLUTION_MS)
  if (earliest > answeredAt) return Math.ceil((earliest - answeredAt) / 1000)
  return latest < askedAt ? -Math.ceil((askedAt - latest) / 1000) : 0
}

const HTTPS_PORT = 443
const TIMEOUT_MS = 3000

/**
 * Makes a TLS handshake with the server of an `https:` address and sends nothing else, because
 * `fetch` does not expose the certificate. Resolves to `undefined` if it gets no certificate within
 * 3 s.
 */
function tlsHandshake(address: string): Promise<TlsFacts | undefined> {
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
    issuer: issuerName(certificate.issuer),
    ...(!socket.authorized && { fault: tlsErrorCode(socket.authorizationError) }),
  }
}

const MAX_NAME_LENGTH = 200

function issuerName(issuer: PeerCertificate['issuer'] | undefined): string {
  const parts = ['CN', 'O'].flatMap((field) => issuer?.[field as 'CN' | 'O'] ?? [])
  return parts.length === 0 ? 'unnamed' : parts.join(', ').slice(0, MAX_NAME_LENGTH)
}

/** Takes `authorizationError`: by Node's types an `Error`, in fact its code as a string, or an `Error` with a code. */
function tlsErrorCode(error: unknown): string {
  if (typeof error === 'string') return error
  return (error as NodeJS.ErrnoException | null)?.code ?? 'not trusted'
}
