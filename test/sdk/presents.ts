import type { FrontendSession } from './backend-sdk.js'

/** What there is to present. */
export interface Presents {
  readonly cookie: FrontendSession
  readonly header: FrontendSession
  /** A user whom a claim validator shuts out. */
  readonly blockedCookie: FrontendSession
  readonly blockedHeader: FrontendSession
  readonly service: string
  readonly serviceWithoutPermission: string
  /** Minted with what the SDK takes for the claims of a session. */
  readonly mintedSession: string
  /** The same with those of a service beside them. */
  readonly mintedBoth: string
}

/** Header lines. */
export const bearer = (token: string) => `Authorization: Bearer ${token}`
export const cookie = (value: string, name = 'sAccessToken') => `Cookie: ${name}=${value}`

/** What a frontend sends, as header lines. */
export const linesOf = ({ headers }: FrontendSession): string[] =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`)

/** The same token with another signature. */
export const resigned = (token: string) =>
  token.replace(/[^.]+$/, Buffer.alloc(256, 1).toString('base64url'))

/** The same token under another header, signed by nobody. */
export function withVersion(token: string, version: string | undefined): string {
  const [header = '', ...rest] = token.split('.')
  const changed = { ...JSON.parse(Buffer.from(header, 'base64url').toString()), version }
  return [Buffer.from(JSON.stringify(changed)).toString('base64url'), ...rest].join('.')
}

/** Cores of old made sessions with padding and without a `kid`; the SDK asks the core about them. */
export function sessionOfOld(): string {
  const header = JSON.stringify({ alg: 'RS256', typ: 'JWT', version: '2' })
  const timeCreated = Date.now()
  const session = { sessionHandle: 'a-handle', userId: 'mallory', refreshTokenHash1: 'a-hash' }
  const claims = { ...session, userData: {}, timeCreated, expiryTime: timeCreated + 3_600_000 }
  const segments = [header, JSON.stringify(claims), Buffer.alloc(256, 1)]
  return segments.map((segment) => Buffer.from(segment).toString('base64')).join('.')
}
