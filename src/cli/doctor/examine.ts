import { isIP } from 'node:net'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import type { FetchFailureCode } from '../../base/decision/key-set-event.js'
import { Unavailable } from '../../base/decision/service-auth-error.js'
import { formatFailure } from '../../verification/key-set/fetch-key-set.js'
import { KEY_SET_PATHS, type KeySource } from '../../verification/key-set/key-set.js'
import type { Policy } from '../../verification/policy/policy.js'
import { type Found, fault, warning } from '../output/findings.js'
import { daysUntil, formatDuration } from '../output/format-time.js'
import {
  type KeySetReply,
  type ObservedResponse,
  type PublishedKey,
  publishedKeys,
  requestKeySet,
} from './published-key-set.js'

export interface Examination extends KeySetFacts {
  readonly findings: readonly Found[]
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
    keys: outcome.ok ? publishedKeys(outcome.document, outcome.screened, policy) : [],
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
const HEADER_ERROR_MS = 1000

/**
 * Returns how many seconds a server's clock is ahead of this machine's by its `Date` header; negative if it is
 * behind. Returns 0 if the duration of the exchange and the rounding to seconds may explain the difference, and
 * `undefined` without a readable `Date`.
 */
function clockOffset({ headers, requestedAt, answeredAt }: ObservedResponse): number | undefined {
  const date = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(date)) return undefined
  // A cache stored the response, with its `Date`, for this long.
  const ageSeconds = Number(headers.get('age') ?? 0) || 0
  const differenceMs = date + ageSeconds * 1000 - (requestedAt + answeredAt) / 2
  const errorMs = HEADER_ERROR_MS + (answeredAt - requestedAt) / 2
  return Math.abs(differenceMs) <= errorMs ? 0 : Math.round(differenceMs / 1000)
}

const HTTPS_PORT = 443
const TIMEOUT_MS = 3000

/**
 * Makes a TLS handshake with the server of an `https:` address and sends nothing else, because
 * `fetch` does not expose the certificate. Resolves to `undefined` if it gets no trusted certificate within
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
  }
}

const MAX_NAME_LENGTH = 200

function issuerName(issuer: PeerCertificate['issuer'] | undefined): string {
  const parts = ['CN', 'O'].flatMap((field) => issuer?.[field as 'CN' | 'O'] ?? [])
  return parts.length === 0 ? 'unnamed' : parts.join(', ').slice(0, MAX_NAME_LENGTH)
}

/** Facts about a server from a TLS handshake. */
interface TlsFacts {
  readonly protocol: string
  /** Seconds since the epoch. */
  readonly validUntil: number
  readonly issuer: string
}

interface KeySetFacts {
  readonly answer: KeySetReply
  readonly tls: TlsFacts | undefined
  readonly keys: readonly PublishedKey[]
  readonly clockOffsetSeconds: number | undefined
  readonly policy: Policy
  readonly nowMs: number
}

/** Returns the faults and warnings. For an unreachable key set there are none: `doctor` fails with an error. */
const findingsOn = (facts: KeySetFacts): Found[] =>
  [
    findingsOnAnswer(facts),
    findingsOnTls(facts),
    findingsOnKeys(facts),
    findingsOnFreshness(facts),
    findingsOnClock(facts),
  ].flat()

/** No answer in time is no fault of the key set. */
const OUTAGES: readonly FetchFailureCode[] = ['network', 'timeout']

function findingsOnAnswer({ answer: { outcome, response }, policy }: KeySetFacts): Found | Found[] {
  if (outcome.ok || OUTAGES.includes(outcome.failure.code)) return []
  const { failure } = outcome
  if (failure.code !== 'status' || response === undefined) {
    return fault(failure.code, `a receiver cannot use the answer (${formatFailure(failure)})`)
  }
  const { status } = response
  return fault(
    'status',
    `the answer has status ${status} instead of 200${hintOn(response, policy)}`,
  )
}

function hintOn({ status, headers }: ObservedResponse, { tokens }: Policy): string {
  if (status === 404 && tokens.kind === 'oauth2') {
    return ': check jwksUri: it is the jwks_uri in {issuer}/.well-known/openid-configuration'
  }
  if (status === 404) return `: check issuer, apiBasePath and jwksUri; ${KEY_SET_PATHS}`
  const location = headers.get('location') ?? ''
  if (!URL.canParse(location)) return ''
  const { origin, pathname } = new URL(location)
  return `, and ${origin}${pathname} as location: receivers follow no redirects, so set jwksUri to the final address`
}

const MIN_CERTIFICATE_DAYS = 14

function findingsOnTls({ answer, tls, nowMs }: KeySetFacts): Found | Found[] {
  const { protocol, hostname } = new URL(answer.jwksUri)
  if (protocol === 'http:') {
    const isLoopback = hostname === 'localhost' || /^(\[::1\]|127\.[\d.]+)$/.test(hostname)
    if (isLoopback) return []
    return warning('insecure_http', 'without TLS, an attacker in the network can replace the keys')
  }
  const days = tls && daysUntil(tls.validUntil, nowMs)
  if (days === undefined || days >= MIN_CERTIFICATE_DAYS) return []
  return warning('certificate_ending', `the certificate expires in ${days} days`)
}

function findingsOnKeys({ answer, keys, policy }: KeySetFacts): Found | Found[] {
  if (!answer.outcome.ok) return []
  const unusable = keys.flatMap(({ kid, reason }): Found[] => {
    if (reason === undefined || IS_REFUSED_BY_POLICY.has(reason)) return []
    if (policy.tokens.kind === 'oauth2' && IS_FOR_OTHER_USE.has(reason)) return []
    const message = `key ${kid ?? 'without an id'} is ignored (${reason})`
    return reason === 'private'
      ? [fault('key_private', `${message}: its private part is published, so replace it at once`)]
      : [warning('key_unusable', message)]
  })
  if (keys.some(({ usable }) => usable)) return unusable
  const none = 'the policy can use no key of the set: every token is refused'
  return [...unusable, fault('no_usable_key', none)]
}

const IS_REFUSED_BY_POLICY: ReadonlySet<string> = new Set(['static_key_refused', 'key_denied'])

/** An OAuth 2.0 issuer may publish keys for other algorithms and for encryption: Keycloak does. */
const IS_FOR_OTHER_USE: ReadonlySet<string> = new Set([
  'not_rsa',
  'not_for_signatures',
  'other_algorithm',
])

const SHORT_SECONDS = 60
const BEFORE_ROTATION =
  ' (this is normal in the last minute before the core rotates its key: check again afterwards)'

function findingsOnFreshness({ answer: { outcome }, policy }: KeySetFacts): Found | Found[] {
  if (!outcome.ok) return []
  const { leftSeconds } = outcome.freshness
  if (leftSeconds === undefined) {
    return warning(
      'no_max_age',
      'no max-age: receivers refresh the key set every 5 min and, in an outage, use it for up to 1 h',
    )
  }
  if (leftSeconds >= SHORT_SECONDS) return []
  const left = formatDuration(leftSeconds)
  return warning(
    'max_age_short',
    `fresh for only ${left}: receivers cannot survive a longer outage${policy.tokens.kind === 'service' ? BEFORE_ROTATION : ''}`,
  )
}

function findingsOnClock({ clockOffsetSeconds: offset, policy }: KeySetFacts): Found | Found[] {
  if (offset === undefined || Math.abs(offset) <= policy.clockToleranceSeconds) return []
  const apart = formatDuration(Math.abs(offset))
  const tolerance = `more than the tolerance of ${policy.clockToleranceSeconds} s`
  if (offset < 0) {
    return warning(
      'clock_behind',
      `the clock of the server is ${apart} behind this machine's, ${tolerance}: tokens expire early`,
    )
  }
  return fault(
    'clock_ahead',
    `the clock of the server is ${apart} ahead of this machine's, ${tolerance}: new tokens are refused`,
  )
}
