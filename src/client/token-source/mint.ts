import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { readJsonSegment, segmentsOf } from '../../base/compact-jws.js'
import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import { MAX_TOKEN_LENGTH } from '../../base/raw-headers.js'
import { type Core, type CoreAnswer, callCore, excerptOf } from '../core/call-core.js'
import { CoreFailure, type CoreFailureCode } from '../core/core-options.js'
import { TokenSourceError, type TokenSourceErrorCode } from './token-source-error.js'

/** The claims that a caller chooses: a fixed schema, with the names as in the token. */
export interface ServiceClaims {
  /** The receiving service. */
  readonly aud: string
  /** The calling service. */
  readonly sub: string
  /** Must equal the `source` in the policy of the receivers. */
  readonly source: string
  /** Must equal the `tokenType` in the policy of the receivers. */
  readonly token_type: string
  /** The permissions of the calling service, as the receiver names them. */
  readonly permissions: readonly string[]
}

/** The properties that all tokens of a source share. */
export interface TokenTerms {
  /** The `iss` of the tokens. */
  readonly apiDomain: string
  readonly claims: ServiceClaims
  readonly validitySeconds: number
}

/** What a token is to be bound to: a key (RFC 9449) or a certificate (RFC 8705). */
export type RequestedConfirmation = { readonly jkt: string } | { readonly 'x5t#S256': string }

type RequestedClaims = ServiceClaims & {
  readonly jti: string
  readonly cnf?: RequestedConfirmation
}

/** The token request of a source, and the core that receives it. */
export interface Minting extends TokenTerms {
  readonly core: Core
  readonly timeoutMs: number
  /** What the tokens are bound to, if to anything. */
  readonly confirmation?: (() => Promise<RequestedConfirmation>) | undefined
}

/** Twice the size of the largest token that receivers accept. */
const MAX_ANSWER_BYTES = 16 * 1024

const CODES: Readonly<Record<CoreFailureCode, TokenSourceErrorCode>> = {
  api_key_unavailable: 'api_key_unavailable',
  timeout: 'core_timeout',
  unreachable: 'core_unreachable',
}

/**
 * Gets a new token from the core, signed by its dynamic key (the operation `POST /recipe/jwt`).
 *
 * @throws TokenSourceError if there is none, or if it differs from the requested one.
 */
export async function mint(minting: Minting, signal: AbortSignal): Promise<string> {
  const claims = nextClaims(minting.claims, await minting.confirmation?.())
  const token = tokenIn(await requestJwt(claims, minting, signal))
  const member = unexpectedMember(token, claims, minting)
  if (member !== undefined) throw new TokenSourceError('token_unexpected', { member })
  return token
}

async function requestJwt(
  claims: RequestedClaims,
  { core, apiDomain, validitySeconds, timeoutMs }: Minting,
  signal: AbortSignal,
): Promise<CoreAnswer> {
  // Every field is explicit: the core's defaults are a static key and a validity of 100 years.
  const body = {
    payload: claims,
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: apiDomain,
    validity: validitySeconds,
  }
  const limits = { timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES, signal }
  const operation = { method: 'POST', path: '/recipe/jwt', headers: { rid: 'jwt' } } as const
  try {
    return await callCore(core, { ...operation, body, ...limits })
  } catch (error) {
    if (!(error instanceof CoreFailure)) throw error
    const { code, systemCode } = error
    throw new TokenSourceError(CODES[code], systemCode === undefined ? {} : { systemCode })
  }
}

function tokenIn(answer: CoreAnswer): string {
  const { status, text } = answer
  if (status !== 200) throw toSourceError(answer)
  const { status: outcome, jwt } = parseMembers(text)
  if (outcome === 'UNSUPPORTED_ALGORITHM_ERROR') throw new TokenSourceError('algorithm_unsupported')
  if (outcome !== 'OK' || typeof jwt !== 'string') throw new TokenSourceError('response_malformed')
  return jwt
}

function toSourceError(answer: CoreAnswer): TokenSourceError {
  const { status } = answer
  const code = codeOfStatus(status)
  // Of other answers, such as that of a proxy, nothing is quoted.
  const isQuoted = code === 'core_rejected' && answer.text !== undefined
  const coreText = isQuoted ? excerptOf(answer.reason ?? '') : ''
  return new TokenSourceError(code, {
    coreStatus: status,
    ...(coreText !== '' && { coreText }),
  })
}

function codeOfStatus(status: number): TokenSourceErrorCode {
  if (status === 401) return 'api_key_refused'
  if (status === 429) return 'core_busy'
  return status >= 500 ? 'core_failed' : 'core_rejected'
}

function parseMembers(text: string | undefined): Members {
  const value = text === undefined ? undefined : parseJson(text)
  return isObject(value) ? value : {}
}

const TOKEN_ID_BYTES = 16
/** Ids of the core's dynamic keys. Ids of its static keys, which never rotate, begin with `s-`. */
const DYNAMIC_KEY_ID = /^d-[\x21-\x7e]{1,254}$/
/** The core reads its clock twice, so `exp - iat` may be one second too long. */
const ROUNDING_SECONDS = 1

/** Returns the claims of the next token, with a unique `jti`, so that it can be denied individually. */
const nextClaims = (claims: ServiceClaims, cnf?: RequestedConfirmation): RequestedClaims => ({
  ...claims,
  jti: randomBytes(TOKEN_ID_BYTES).toString('base64url'),
  ...(cnf !== undefined && { cnf }),
})

/**
 * Returns the part of the token that differs from the request, `undefined` if none does. Leaves the
 * signature to the receiver.
 */
function unexpectedMember(
  token: string,
  requested: RequestedClaims,
  terms: Omit<TokenTerms, 'claims'>,
): string | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return 'its size'
  const segments = segmentsOf(token)
  const header = segments && readJsonSegment(segments.header)?.members
  const payload = segments && readJsonSegment(segments.payload)?.members
  if (header === undefined || payload === undefined) return 'its form'
  return unexpectedInHeader(header) ?? unexpectedInClaims(payload, requested, terms)
}

/** Returns the `iat` of a token that `unexpectedMember` has checked. */
export const issuedAt = (token: string): number =>
  Number(readJsonSegment(segmentsOf(token)?.payload ?? '')?.members['iat'])

type Members = Readonly<Record<string, unknown>>

/** A further parameter could change how a receiver reads the token: `version` marks a session token. */
function unexpectedInHeader(header: Members): string | undefined {
  const { alg, kid, typ, ...others } = header
  if (alg !== 'RS256') return 'alg'
  if (typeof kid !== 'string' || !DYNAMIC_KEY_ID.test(kid)) return 'kid'
  if (typ !== undefined && typ !== 'JWT') return 'typ'
  return Object.keys(others).length > 0 ? 'another header parameter' : undefined
}

function unexpectedInClaims(
  payload: Members,
  requested: RequestedClaims,
  { apiDomain, validitySeconds }: Omit<TokenTerms, 'claims'>,
): string | undefined {
  const { iat, exp, permissions, cnf, ...others } = payload
  if (!isSeconds(iat)) return 'iat'
  if (!isSeconds(exp) || !isBetween(exp - iat - validitySeconds, 0, ROUNDING_SECONDS)) return 'exp'
  if (!isSameList(permissions, requested.permissions)) return 'permissions'
  // Whoever steals an unbound token could use it.
  if (!isDeepStrictEqual(cnf, requested.cnf)) return 'cnf'
  const { permissions: _, cnf: _bound, ...texts } = requested
  const expected: Members = { ...texts, iss: apiDomain }
  const differing = Object.keys(expected).find((name) => others[name] !== expected[name])
  if (differing !== undefined) return differing
  const hasMore = Object.keys(others).some((name) => !Object.hasOwn(expected, name))
  return hasMore ? 'another claim' : undefined
}

const isSeconds = (value: unknown): value is number => Number.isSafeInteger(value)

const isBetween = (value: number, min: number, max: number): boolean => value >= min && value <= max

const isSameList = (value: unknown, expected: readonly string[]): boolean =>
  Array.isArray(value) &&
  value.length === expected.length &&
  expected.every((member, index) => value[index] === member)
