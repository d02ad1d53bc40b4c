import { randomBytes } from 'node:crypto'
import { readJsonObject, segmentsOf } from '../../base/compact-jws.js'

/** The claims that a caller chooses: a fixed schema, under the token's own names. */
export interface ServiceClaims {
  /** The receiving service. */
  readonly aud: string
  /** The calling service. */
  readonly sub: string
  /** What receivers have as `source`. */
  readonly source: string
  /** What receivers have as `tokenType`. */
  readonly token_type: string
  /** What the calling service may do, in the names of the receiver. */
  readonly permissions: readonly string[]
}

/** What every token of a source has in common. */
export interface TokenTerms {
  /** The `iss` of its tokens. */
  readonly apiDomain: string
  readonly claims: ServiceClaims
  readonly validitySeconds: number
}

/** The claims of one token. */
export type AskedClaims = ServiceClaims & { readonly jti: string }

/** What receivers take (8 KiB). */
const MAX_TOKEN_BYTES = 8192
const TOKEN_ID_BYTES = 16
/** The core's dynamic keys. Its static ones begin with `s-` and never rotate. */
const DYNAMIC_KEY_ID = /^d-[\x21-\x7e]{1,254}$/
/** The core reads its clock twice. */
const ROUNDING_SECONDS = 1

/** The claims of the next token: with an identifier of its own, so that it alone can be denied. */
export const nextClaims = (claims: ServiceClaims): AskedClaims => ({
  ...claims,
  jti: randomBytes(TOKEN_ID_BYTES).toString('base64url'),
})

/**
 * By what a token is not the one that was asked for; `undefined` when it is. Its signature is for
 * the receiver to verify.
 */
export function unexpectedMember(
  token: string,
  asked: AskedClaims,
  terms: Omit<TokenTerms, 'claims'>,
): string | undefined {
  if (token.length > MAX_TOKEN_BYTES) return 'its size'
  const segments = segmentsOf(token)
  const header = membersOf(segments?.header)
  const payload = membersOf(segments?.payload)
  if (header === undefined || payload === undefined) return 'its form'
  return faultOfHeader(header) ?? faultOfClaims(payload, asked, terms)
}

type Members = Readonly<Record<string, unknown>>

const membersOf = (segment: string | undefined): Members | undefined =>
  segment === undefined ? undefined : readJsonObject(Buffer.from(segment, 'base64url'))?.members

/** A parameter more would let a receiver read it in another way: `version` makes a session's token. */
function faultOfHeader(header: Members): string | undefined {
  const { alg, kid, typ, ...others } = header
  if (alg !== 'RS256') return 'alg'
  if (typeof kid !== 'string' || !DYNAMIC_KEY_ID.test(kid)) return 'kid'
  if (typ !== undefined && typ !== 'JWT') return 'typ'
  return Object.keys(others).length > 0 ? 'another header parameter' : undefined
}

function faultOfClaims(
  payload: Members,
  asked: AskedClaims,
  { apiDomain, validitySeconds }: Omit<TokenTerms, 'claims'>,
): string | undefined {
  const { iat, exp, permissions, ...others } = payload
  if (!isSeconds(iat)) return 'iat'
  if (!isSeconds(exp) || !isBetween(exp - iat - validitySeconds, 0, ROUNDING_SECONDS)) return 'exp'
  if (!isSameList(permissions, asked.permissions)) return 'permissions'
  const { permissions: _, ...texts } = asked
  const expected: Members = { ...texts, iss: apiDomain }
  const differing = Object.keys(expected).find((name) => others[name] !== expected[name])
  if (differing !== undefined) return differing
  const isMore = Object.keys(others).some((name) => !Object.hasOwn(expected, name))
  return isMore ? 'another claim' : undefined
}

const isSeconds = (value: unknown): value is number => Number.isSafeInteger(value)

const isBetween = (value: number, least: number, most: number): boolean =>
  value >= least && value <= most

const isSameList = (value: unknown, expected: readonly string[]): boolean =>
  Array.isArray(value) &&
  value.length === expected.length &&
  expected.every((member, index) => value[index] === member)
