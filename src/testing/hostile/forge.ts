import { type KeyObject, randomUUID } from 'node:crypto'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { compactToken, hs256, type Part, rs256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import { createSigningKey, type SigningKey } from '../issuer/issuer-keys.js'

/** A value of the `Authorization` header that every receiver must refuse. */
export interface HostileToken {
  /** Unique in the catalogue. */
  readonly name: string
  /** Why it must be refused. */
  readonly why: string
  /** The value of the only `Authorization` header; within Node's default limits. */
  readonly authorization: string
  /** 403 if the token is valid but its caller is not approved, otherwise 401. */
  readonly expect: 401 | 403
  /** Of a token with an unknown key: a receiver looks for two such keys in 10 s, and may answer others with this. */
  readonly orElse?: 503
}

type Members = Readonly<Record<string, unknown>>
/** The values of a member: in a list, or by the rest of their names. */
type Values = readonly unknown[] | Members
/** A JWS, and the name of its case. */
export type Draft = readonly [name: string, jws: string]
/** JWSs by the names of their cases, in a list or by name. */
export type Drafts = readonly Draft[] | Readonly<Record<string, string>>

/** Makes JWSs that nobody honest would make, and cases of them. */
export interface Forge<Case> {
  /** The header and the claims of a valid one. */
  readonly header: Members
  readonly claims: Members
  /** Signs correctly. */
  readonly signer: Signer
  /** A JWS of these parts, with a correct signature unless `signer` is given. */
  token(parts?: { header?: Part; payload?: Part; signer?: Signer }): string
  /** A correctly signed one in which these members replace those of the header. */
  withHeader(header: Members): string
  /** A correctly signed one in which these claims replace the valid ones. */
  withClaims(claims: Members): string
  /** A correctly signed one in which raw JSON text replaces one claim. */
  withRawClaim(name: string, json: string): string
  /** One draft for each value of a member. `right` is not shown in their names, because it varies between runs. */
  headerDrafts(member: string, values: Values, right?: unknown): Draft[]
  claimDrafts(claim: string, values: Values, right?: unknown): Draft[]
  /** Cases that must be refused, by the reason. */
  groups(drafts: Readonly<Record<string, Drafts>>, changed?: Partial<Case>): Case[]
}

interface Model<Case> {
  readonly header: Members
  readonly claims: () => Members
  readonly signer: Signer
  readonly caseOf: (name: string, why: string, jws: string) => Case
}

export function forgeOf<Case>({ header, claims, signer, caseOf }: Model<Case>): Forge<Case> {
  const token: Forge<Case>['token'] = (parts = {}) =>
    compactToken(parts.header ?? header, parts.payload ?? claims(), parts.signer ?? signer)
  const withHeader = (changed: Members) => token({ header: { ...header, ...changed } })
  const withClaims = (changed: Members) => token({ payload: { ...claims(), ...changed } })
  return {
    header,
    claims: claims(),
    signer,
    token,
    withHeader,
    withClaims,
    withRawClaim(name, json) {
      const rest = JSON.stringify({ ...claims(), [name]: undefined }).slice(1, -1)
      return token({ payload: `{${rest},${JSON.stringify(name)}:${json}}` })
    },
    headerDrafts: draftsBy(withHeader),
    claimDrafts: draftsBy(withClaims),
    groups: (drafts, changed) =>
      Object.entries(drafts).flatMap(([why, group]) =>
        (Array.isArray(group) ? group : Object.entries(group)).map(([name, jws]: Draft) => ({
          ...caseOf(name, why, jws),
          ...changed,
        })),
      ),
  }
}

/** Makes a draft for each value of a member. */
const draftsBy =
  (make: (changed: Members) => string): Forge<never>['claimDrafts'] =>
  (member, values, right) =>
    namedValues(member, values, right).map(([name, value]) => [name, make({ [member]: value })])

function namedValues(member: string, values: Values, right: unknown): [string, unknown][] {
  if (Array.isArray(values)) return values.map((value) => [nameOf(member, value, right), value])
  return Object.entries(values).map(([name, value]) => [`${member} ${name}`, value])
}

const MAX_NAME_LENGTH = 100

/** Values that are no text, and the empty text. */
export const NO_TEXT: readonly unknown[] = [undefined, null, '', 0, 1, true, false, [], {}]

/** The name of a case. `(right)` replaces the correct value. */
export function nameOf(place: string, value: unknown, right?: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  const stable = typeof right === 'string' ? text.replaceAll(right, '(right)') : text
  return `${place} ${stable}`.slice(0, MAX_NAME_LENGTH)
}

/** Makes tokens that an issuer would never issue, with its keys or an attacker's. */
export interface TokenForge extends Forge<HostileToken> {
  /** Whether the tokens are OAuth 2.0 access tokens. */
  readonly isOAuth2: boolean
  readonly key: SigningKey
  readonly staticKey: SigningKey
  readonly attacker: SigningKey
  /** A valid token, always the same. */
  readonly good: string
}

/** Shared by all forges, because making an RSA key is slow. */
let attacker: SigningKey | undefined

export function createTokenForge(issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>): TokenForge {
  const ring = keyRingOf(issuer)
  const key = ring.current()
  attacker ??= createSigningKey(`d-${randomUUID()}`)
  const good = issuer.token()
  const [header = {}, claims = {}] = good.split('.', 2).map(decode)
  const forge = forgeOf<HostileToken>({
    header,
    claims: () => claims,
    signer: rs256(key.privateKey),
    caseOf: (name, why, token) => ({ name, why, authorization: `Bearer ${token}`, expect: 401 }),
  })
  const isOAuth2 = issuer.policy().tokens === 'oauth2'
  return { ...forge, isOAuth2, key, staticKey: ring.staticKey, attacker, good }
}

const decode = (segment: string): Members =>
  JSON.parse(Buffer.from(segment, 'base64url').toString())

/** A depth of nesting that just fits into a token of 8 KiB. */
export const DEPTH = 2000

/** Headers and payloads that are not JSON objects in UTF-8. */
export function malformedParts<Case>({ header, claims, token }: Forge<Case>): Draft[] {
  const parts = { header: JSON.stringify(header), payload: JSON.stringify(claims) }
  const brokenUtf8 = (text: string): Uint8Array =>
    Buffer.from(`{"x":"\u00ff\u00c0",${text.slice(1)}`, 'latin1')
  return Object.entries(parts).flatMap(([part, text]) =>
    Object.entries<Part>({
      'that is null': 'null',
      'that is []': '[]',
      'that is a list of the object': `[${text}]`,
      'that is 1': '1',
      'that is text': '"text"',
      'that is true': 'true',
      'that is ""': '""',
      'cut off': text.slice(0, -1),
      'with more behind it': `${text}{}`,
      'of raw bytes': Buffer.from([0, 1, 2, 255]),
      'with a byte order mark': `\ufeff${text}`,
      'of invalid UTF-8': brokenUtf8(text),
      'of UTF-16': Buffer.from(text, 'utf16le'),
      'that nests deeply': `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`,
    }).map(([what, content]): Draft => [`a ${part} ${what}`, token({ [part]: content })]),
  )
}

/** Signatures that are almost correct, or nothing like it. */
export function alteredSignatures<Case>({ signer, token }: Forge<Case>): Record<string, string> {
  const altered = (alter: (signature: Buffer) => Uint8Array): string =>
    token({ signer: (input) => alter(Buffer.from(signer(input))) })
  const flipped = (share: number, bit: number): string =>
    altered((signature) => {
      const at = Math.floor(share * (signature.length - 1))
      return signature.fill(signature.readUInt8(at) ^ bit, at, at + 1)
    })
  return {
    'an empty signature': altered(() => Buffer.of()),
    'one byte short': altered((signature) => signature.subarray(1)),
    'its last byte short': altered((signature) => signature.subarray(0, -1)),
    'one byte of one': altered(() => Buffer.of(1)),
    'a byte more in front': altered((signature) => Buffer.concat([Buffer.of(0), signature])),
    'a byte more behind': altered((signature) => Buffer.concat([signature, Buffer.of(0)])),
    'all zero': altered((signature) => signature.fill(0)),
    'the number one': altered((signature) => signature.fill(0).fill(1, signature.length - 1)),
    'all ones': altered((signature) => signature.fill(0xff)),
    'twice in a row': altered((signature) => Buffer.concat([signature, signature])),
    'back to front': altered((signature) => signature.reverse()),
    'the first bit flipped': flipped(0, 0x80),
    'a bit in the middle flipped': flipped(0.5, 0x01),
    'the last bit flipped': flipped(1, 0x01),
  }
}

/** HS256 with a secret that everybody knows: the public key, as text or bytes. */
export function publicSecrets<Case>(
  { header, token }: Forge<Case>,
  publicKey: KeyObject,
  more: Readonly<Record<string, string | Buffer>> = {},
): Draft[] {
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  return Object.entries({
    'SPKI PEM': pem,
    'SPKI PEM without its last line break': pem.trim(),
    'SPKI DER': publicKey.export({ type: 'spki', format: 'der' }),
    'JWK text': JSON.stringify(publicKey.export({ format: 'jwk' })),
    'empty string': '',
    ...more,
  }).map(([name, secret]): Draft => {
    const parts = { header: { ...header, alg: 'HS256' }, signer: hs256(secret) }
    return [`HS256 with the ${name}`, token(parts)]
  })
}
