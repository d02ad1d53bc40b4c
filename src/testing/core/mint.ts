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
    throw new Refused(500, `The character encoding [${charset}] is not supported`)
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
export function parseMintRequest(text: string): MintRequest {
  const body = objectIn(text)
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

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text, (_, member) => storable(member))
    if (isObject(value)) return value
  } catch {
    // Thrown below: the core has one text for both.
  }
  throw new Refused(400, 'Invalid Json Input')
}

/** The core writes `?` for half of a surrogate pair. */
const storable = (value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(/\p{Surrogate}/gu, '?') : value

/** Returns the core's reply to a mint request. */
export function mintToken(request: MintRequest, ring: KeyRing, nowMs: number): object {
  const { algorithm, jwksDomain, payload, validity, useStaticSigningKey } = request
  if (algorithm.toUpperCase() !== 'RS256') return { status: 'UNSUPPORTED_ALGORITHM_ERROR' }
  const key = useStaticSigningKey ? ring.staticKey : ring.current()
  const iat = Math.floor(nowMs / 1000)
  // The caller's claims replace those of the core.
  const claims = { iat, exp: iat + validity, iss: jwksDomain, ...payload }
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
