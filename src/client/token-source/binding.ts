import { randomUUID, X509Certificate } from 'node:crypto'
import type { CompactJWSHeaderParameters, CryptoKey } from 'jose'
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { CompactSign } from 'jose/jws/compact/sign'
import { exportJWK } from 'jose/key/export'
import { generateKeyPair } from 'jose/key/generate/keypair'
import { z } from 'zod'
import { sentMethod } from '../../base/fetch.js'
import { isObject } from '../../base/options.js'
import { hash } from '../../base/supported-node.js'
import type { RequestedConfirmation } from './mint.js'

/**
 * The key of the caller that tokens are bound to. `'dpop'`: one that the source makes; each request then needs
 * a proof of it. `certificate`: the client certificate of the TLS connections to the receivers, in PEM (of
 * which the first certificate counts) or DER.
 *
 * @inline
 */
export type BindOption = 'dpop' | { readonly certificate: string | Uint8Array }

/** What the tokens are bound to; for a certificate, its thumbprint. */
type Bind = 'dpop' | { readonly thumbprint: string }

export const bindOption = () =>
  z.unknown().transform((value, context): Bind => {
    if (value === 'dpop') return value
    const thumbprint = isObject(value) ? thumbprintIn(value) : undefined
    if (thumbprint !== undefined) return { thumbprint }
    const message = "must be 'dpop' or { certificate: a certificate in PEM or DER }"
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })

/** The error of `X509Certificate` is not reported, because the value may be a private key. */
function thumbprintIn({ certificate, ...others }: Record<string, unknown>): string | undefined {
  const isCertificate = typeof certificate === 'string' || certificate instanceof Uint8Array
  if (!isCertificate || Object.keys(others).length > 0) return undefined
  try {
    return hash('sha256', new X509Certificate(certificate).raw, 'base64url')
  } catch {
    return undefined
  }
}

export const bindFaults = ({ bind, singleUse }: Readonly<Record<string, unknown>>): string[] =>
  singleUse === true && bind === 'dpop'
    ? ["singleUse is not needed with bind: 'dpop': each proof is used once, and its token is not"]
    : []

/** Returns a function that resolves with the `cnf` claim to request; `undefined` if the tokens are not bound. */
export function confirmationOf(
  bind: Bind | undefined,
  key: DpopKey | undefined,
): (() => Promise<RequestedConfirmation>) | undefined {
  if (bind === undefined) return undefined
  if (bind !== 'dpop') return async () => ({ 'x5t#S256': bind.thumbprint })
  return key && (async () => ({ jkt: await key.thumbprint() }))
}

/** The facts that a proof states. */
interface ProofClaims {
  readonly method: string
  /** Without query and fragment. */
  readonly uri: string
  readonly token: string
  /** Seconds since the epoch, by the clock of the core. */
  readonly iat: number
}

/** A key pair of this process that signs proofs (DPoP, RFC 9449). The private key cannot be exported. */
export interface DpopKey {
  /** Returns the thumbprint of the public key, to which tokens are bound. */
  thumbprint(): Promise<string>
  sign(claims: ProofClaims): Promise<string>
}

interface Pair {
  readonly privateKey: CryptoKey
  readonly thumbprint: string
  /** The header of all proofs. */
  readonly header: CompactJWSHeaderParameters
}

/** The pair is generated when it is first needed. */
export function createDpopKey(): DpopKey {
  let pair: Promise<Pair> | undefined
  const pairOnce = (): Promise<Pair> => (pair ??= generatePair())
  return {
    thumbprint: async () => (await pairOnce()).thumbprint,
    async sign({ method, uri, token, iat }) {
      const { privateKey, header } = await pairOnce()
      const ath = hash('sha256', token, 'base64url')
      const payload = JSON.stringify({ jti: randomUUID(), htm: method, htu: uri, iat, ath })
      return new CompactSign(Buffer.from(payload)).setProtectedHeader(header).sign(privateKey)
    },
  }
}

async function generatePair(): Promise<Pair> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk }
  return { privateKey, thumbprint: await calculateJwkThumbprint(jwk), header }
}

/** The request that a proof is for. */
export interface ProofRequest {
  /** The method, as `fetch` takes it: `get` is sent as `GET`, and `patch` as it is. */
  readonly method: string
  /** The absolute URL. Query and fragment do not count. */
  readonly url: string
  /** The token that is sent with the request. Default: the one that `token()` returns now. */
  readonly token?: string | undefined
}

interface ParsedProofRequest {
  readonly method: string
  /** The URL without query and fragment, as `fetch` sends it. */
  readonly uri: string
  readonly token: string | undefined
}

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/

/**
 * Checks the argument of `proof`.
 *
 * @throws TypeError that does not repeat the values.
 */
export function parseProofRequest(request: ProofRequest): ParsedProofRequest {
  const { method, url, token } = (isObject(request) ? request : {}) as Partial<ProofRequest>
  if (typeof method !== 'string' || !TOKEN.test(method)) {
    throw new TypeError('proof: method must be an HTTP method, such as GET')
  }
  if (token !== undefined && (typeof token !== 'string' || token === '')) {
    throw new TypeError('proof: token must be a token, as a string')
  }
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('proof: url must be the absolute http(s) URL of the request')
  }
  // Receivers normalise the URI of a proof (RFC 3986); a path with a % that begins no escape has no normal form.
  if (/%(?![\dA-Fa-f]{2})/.test(parsed.pathname)) {
    throw new TypeError(
      'proof: a % in the path of url must begin an escape; write %25 for a plain one',
    )
  }
  return { method: sentMethod(method), uri: parsed.origin + parsed.pathname, token }
}
