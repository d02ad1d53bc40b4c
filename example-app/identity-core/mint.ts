import { sign } from 'node:crypto'
import type { SigningKey } from './signing-key.js'

export interface MintRequest {
  readonly algorithm: string
  readonly jwksDomain: string
  readonly payload: Record<string, unknown>
  readonly validitySeconds: number
  readonly useStaticSigningKey: boolean
}

interface Claims {
  [name: string]: unknown
  aud?: unknown
}

/** What the caller sent is wrong: the message is the body of the 400. */
export class BadInput extends Error {
  override readonly name = 'BadInput'
}

/**
 * Reads the body of `POST /recipe/jwt`, field by field in the core's order.
 * @throws {BadInput}
 */
export function parseMintRequest(text: string): MintRequest {
  const body = parseObject(text)
  const algorithm = field(body, 'algorithm', isString)
  const jwksDomain = field(body, 'jwksDomain', isString)
  const payload = field(body, 'payload', isObject)
  const validitySeconds = field(body, 'validity', isInteger)
  // The text is the core's, although 0 is refused too.
  if (validitySeconds <= 0) throw new BadInput('validity must be greater than or equal to 0')
  const useStaticSigningKey =
    !Object.hasOwn(body, 'useStaticSigningKey') || field(body, 'useStaticSigningKey', isBoolean)
  return { algorithm, jwksDomain, payload, validitySeconds, useStaticSigningKey }
}

/** Whether the core can sign with it: RS256, in any case. */
export function isSupported(algorithm: string): boolean {
  return algorithm.toUpperCase() === 'RS256'
}

/** The token as the core makes it: the caller's claims win over those that the core adds. */
export function mintToken(request: MintRequest, key: SigningKey, nowMs: number): string {
  const iat = Math.floor(nowMs / 1000)
  const exp = iat + request.validitySeconds
  const claims: Claims = { iat, exp, iss: request.jwksDomain, ...request.payload }
  if (Array.isArray(claims.aud) && claims.aud.length === 1) claims.aud = claims.aud[0]

  const header = { kid: key.kid, typ: 'JWT', alg: 'RS256' }
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), key.privateKey).toString('base64url')}`
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text)
    if (isObject(body)) return body
  } catch {
    // Told below: text that is no JSON and JSON that is no object are the same to the core.
  }
  throw new BadInput('Invalid Json Input')
}

function field<Value>(
  body: Record<string, unknown>,
  name: string,
  is: (value: unknown) => value is Value,
): Value {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (is(value)) return value
  throw new BadInput(`Field name '${name}' is invalid in JSON input`)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean'
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
