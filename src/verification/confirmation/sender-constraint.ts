import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { flag, isObject, optionsObject } from '../../base/options.js'
import type { WireHeaders } from '../../base/raw-headers.js'
import { type BaseUrl, parseBaseUrl } from './http-uri.js'

/** What a token is bound to (`cnf`, RFC 7800). Frozen. */
export interface Confirmation {
  /** A client certificate (RFC 8705, section 3) or a key of the caller (DPoP, RFC 9449, section 6). */
  readonly kind: 'certificate' | 'dpop'
  /** Base64url of the SHA-256 digest of the certificate, or the thumbprint of the key (RFC 7638). */
  readonly thumbprint: string
}

/** What a valid token is bound to, if to anything. */
export type Binding = Confirmation | 'none'

/**
 * Reads the claim `cnf`: exactly one binding that is known here. `undefined` if it is anything else. Other
 * members are ignored (RFC 7800, section 3.1).
 */
export function readConfirmation(cnf: unknown): Confirmation | undefined {
  if (!isObject(cnf)) return undefined
  const isCertificate = Object.hasOwn(cnf, 'x5t#S256')
  if (isCertificate === Object.hasOwn(cnf, 'jkt')) return undefined
  const thumbprint = isCertificate ? cnf['x5t#S256'] : cnf['jkt']
  if (typeof thumbprint !== 'string') return undefined
  return Object.freeze({ kind: isCertificate ? 'certificate' : 'dpop', thumbprint })
}

/** Which bindings of tokens a receiver can check, and whether it requires one. */
export interface SenderConstraintOption {
  /**
   * Accepts tokens that are bound to a client certificate (RFC 8705, section 3). `true`: the certificate of
   * the TLS connection. Behind a proxy that you trust: a function that returns the certificate in DER, or
   * `undefined` if there is none; if it throws or returns anything else, the request gets `next(error)`. Whom to
   * trust is decided by the TLS server (`rejectUnauthorized`).
   */
  readonly mtls?: true | CertificateOf | undefined
  /** Accepts tokens that are bound to a key of the caller, which each request proves (DPoP, RFC 9449). */
  readonly dpop?: DpopOption | undefined
  /** Refuses tokens without `cnf`. Default: `false`. */
  readonly required?: boolean | undefined
}

/**
 * Returns the client's certificate in DER.
 *
 * @inline
 */
export type CertificateOf = (request: IncomingMessage) => Uint8Array | undefined

/**
 * How proofs are checked.
 *
 * @inline
 */
interface DpopOption {
  /**
   * One to 16 absolute `http(s)` URLs of this receiver as callers write them, without user name, query,
   * fragment or trailing slash. Where a proxy removes a prefix of the path, the URLs have that prefix. Headers such as
   * `Host` are never read.
   */
  readonly baseUrls: readonly string[]
}

/** The parts of a request that a bound token must match. */
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

/** A checked `senderConstraint`. */
export interface SenderConstraint {
  readonly mtls?: true | CertificateOf | undefined
  readonly dpop?: { readonly baseUrls: readonly BaseUrl[] } | undefined
  readonly required: boolean
}

const BASE_URL =
  'must be an absolute http(s) URL of a host, without user name, query, fragment or trailing slash, spelled as new URL() spells it'
const BASE_URLS = 'must be a list of 1 to 16 URLs'

const baseUrl = () =>
  z.string({ error: BASE_URL }).transform((text, context) => {
    const parsed = parseBaseUrl(text)
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: BASE_URL })
    return z.NEVER
  })

export const senderConstraintOption = () =>
  optionsObject({
    mtls: z
      .custom<true | CertificateOf>((value) => value === true || typeof value === 'function', {
        error: 'must be true or a function that returns the certificate in DER',
      })
      .optional(),
    dpop: optionsObject({
      baseUrls: z
        .array(baseUrl(), { error: BASE_URLS })
        .min(1, { error: BASE_URLS })
        .max(16, { error: BASE_URLS }),
    }).optional(),
    required: flag().default(false),
  })

/** @returns the fault of a constraint that no token could satisfy. */
export function senderConstraintFaults({
  senderConstraint,
}: Readonly<Record<string, unknown>>): string[] {
  const { mtls, dpop, required } = (senderConstraint ?? {}) as SenderConstraintOption
  return required === true && mtls === undefined && dpop === undefined
    ? ['senderConstraint.required needs mtls or dpop: without both, every token would be refused']
    : []
}

/** Whether a receiver can check this binding. */
export const isSupported = ({ kind }: Confirmation, { mtls, dpop }: SenderConstraint): boolean =>
  kind === 'dpop' ? dpop !== undefined : mtls !== undefined
