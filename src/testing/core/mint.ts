import { z } from 'zod'
import { isObject } from '../../base/options.js'
import { compactToken, rs256 } from '../issuer/compact-token.js'
import type { KeyRing } from '../issuer/issuer-keys.js'

/** What a request is refused with: the status, and the text of a core. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number

  constructor(status: number, text: string) {
    super(text)
    this.status = status
  }
}

/** Returns a body as text, like a core: in the `charset` of its type, or else in ISO-8859-1. @throws Refused */
export function textOf(body: Buffer, contentType = ''): string {
  const [, charset = 'iso-8859-1'] = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType) ?? []
  // `TextDecoder` would read it as windows-1252.
  if (/^(?:iso-8859-1|latin1)$/i.test(charset)) return body.toString('latin1')
  if (!/^utf-8$/i.test(charset)) {
    const text = `The character encoding [${charset}] is not supported`
    throw new Refused(500, `java.io.UnsupportedEncodingException: ${text}`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    throw new Refused(500, 'java.nio.charset.MalformedInputException: Input length = 1')
  }
}

/** The body of `POST /recipe/jwt`. */
interface MintRequest {
  readonly algorithm: string
  readonly jwksDomain: string
  readonly payload: Readonly<Record<string, unknown>>
  /** Seconds. */
  readonly validity: number
  readonly useStaticSigningKey: boolean
}

/** Reads the fields in the core's order: it complains of the first. @throws Refused */
export function parseMintRequest(body: Readonly<Record<string, unknown>>): MintRequest {
  const field = <Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> => {
    const read = schema.safeParse(Object.hasOwn(body, name) ? body[name] : undefined)
    if (read.success) return read.data
    throw new Refused(400, `Field name '${name}' is invalid in JSON input`)
  }
  const algorithm = field('algorithm', z.string())
  const jwksDomain = field('jwksDomain', z.string())
  const payload = field('payload', z.custom<MintRequest['payload']>(isObject))
  const validity = field('validity', z.int())
  // The core's words, although it refuses 0 too.
  if (validity <= 0) throw new Refused(400, 'validity must be greater than or equal to 0')
  const useStaticSigningKey = field('useStaticSigningKey', z.boolean().default(true))
  return { algorithm, jwksDomain, payload, validity, useStaticSigningKey }
}

/** Reads the body of a request. @throws Refused */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value = storable(JSON.parse(text), 0)
    if (isObject(value)) return value
  } catch {
    // Thrown below: the core has one text for both.
  }
  throw new Refused(400, 'Invalid Json Input')
}

/** A core reads no deeper. */
const DEEPEST = 255

/** The core writes `?` for half of a surrogate pair. */
function storable(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.replaceAll(/\p{Surrogate}/gu, '?')
  if (typeof value !== 'object' || value === null) return value
  if (depth === DEEPEST) throw new RangeError('too deep')
  if (Array.isArray(value)) return value.map((element) => storable(element, depth + 1))
  const members = Object.entries(value).map(([name, member]) => {
    return [storable(name, depth), storable(member, depth + 1)]
  })
  return Object.fromEntries(members)
}

/** Returns the core's reply to a mint request. @throws Refused */
export function mintToken(request: MintRequest, ring: KeyRing, nowMs: number): object {
  const { algorithm, jwksDomain, payload, validity, useStaticSigningKey } = request
  if (algorithm.toUpperCase() !== 'RS256') return { status: 'UNSUPPORTED_ALGORITHM_ERROR' }
  const key = useStaticSigningKey ? ring.staticKey : ring.current()
  const iat = Math.floor(nowMs / 1000)
  // The caller's claims replace those of the core.
  const claims = { iat, exp: iat + validity, iss: jwksDomain, ...payload }
  if (hasTooLargeInteger(payload)) {
    const types = 'Map, List, Boolean, Integer, Long, Double, String, Date, Instant, and Null'
    const text = `Claim values must only be of types ${types}`
    throw new Refused(500, `java.lang.IllegalArgumentException: ${text}`)
  }
  const header = { kid: key.kid, typ: 'JWT', alg: 'RS256' }
  const jwt = compactToken(header, { ...claims, ...audienceIn(payload) }, rs256(key.privateKey))
  return { status: 'OK', jwt }
}

/** The core drops what is no string, and makes a text of a list of one. */
function audienceIn({ aud }: Readonly<Record<string, unknown>>): { aud?: unknown } {
  if (aud === undefined) return {}
  const audience = [aud].flat().filter((one) => typeof one === 'string')
  return { aud: audience.length > 1 ? audience : audience[0] }
}

const TOO_LARGE = 2 ** 63
/** From this size on, `JSON.stringify` writes an exponent, and the core reads a double. */
const DOUBLE_FROM = 1e21

function hasTooLargeInteger(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) {
    return Object.values(value).some(hasTooLargeInteger)
  }
  const size = Math.abs(Number.isInteger(value) ? Number(value) : 0)
  return size >= TOO_LARGE && size < DOUBLE_FROM
}
