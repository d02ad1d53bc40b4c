import { verify as verifySignature } from 'node:crypto'
import type { RequestHandler } from 'express'
import type { TestIssuer } from 'express-service-auth/testing'
import { keyRingOf } from '../../../src/testing/issuer/issuer.js'
import { knowToken } from '../secret-search/index.js'

export const COOKIE = 'sAccessToken'

/** The sessions of a core that also mints service tokens, and who verifies them. */
export interface Sessions {
  readonly verify: RequestHandler
  /** A token that `verify` accepts. */
  session(): Promise<string>
  /** One that it answers with 403. */
  forbidden(): Promise<string>
  /** Minted as a service's token, with the claims of a session. */
  minted(): Promise<string>
  /** Whose session `verify` has left on the request. */
  userOf(identity: unknown): string
}

export interface Session {
  getHandle(): string
  getUserId(): string
}

/** As the backend SDK is at fault by itself: a missing `version` is read as 3. */
export function sessionsOf(issuer: TestIssuer): Sessions {
  const claims = {
    iss: `${issuer.url}/auth`,
    sub: 'user-1',
    sessionHandle: 'handle-1',
    refreshTokenHash1: 'hash-1',
    rsub: 'user-1',
    tId: 'public',
    blocked: false,
  }
  const foreign = { aud: undefined, source: undefined, token_type: undefined }
  const make = async (changed: object, header: Readonly<Record<string, unknown>>) => {
    const token = issuer.token({ ...claims, ...changed }, header)
    knowToken(token)
    return token
  }
  const session = { ...foreign, permissions: undefined, jti: undefined }
  return {
    verify: verifierOf(issuer),
    session: () => make(session, { version: '5' }),
    forbidden: () => make({ ...session, blocked: true }, { version: '5' }),
    minted: () => make(foreign, {}),
    userOf: (identity) => (identity as Session).getUserId(),
  }
}

class VerifierError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** A verifier that is made as the SDK's is: it calls `next()` within its own `try`. */
const verifierOf =
  (issuer: TestIssuer): RequestHandler =>
  async (request, response, next) => {
    try {
      const token = sessionTokenOf(request)
      const isWithout = request.method === 'OPTIONS' || request.method === 'TRACE'
      Object.assign(request, { session: isWithout ? undefined : await sessionIn(token, issuer) })
      next()
    } catch (error) {
      if (!(error instanceof VerifierError)) next(error)
      else response.status(error.status).json({ message: error.message })
    }
  }

function sessionTokenOf({ headers, cookies }: Parameters<RequestHandler>[0]): string | undefined {
  const { authorization = '', cookie = '' } = headers
  const bearer = authorization.startsWith('Bearer ') ? authorization.slice(7).trim() : undefined
  if (bearer !== undefined && hasSessionForm(bearer)) return bearer
  const jar: Record<string, string> = cookies ?? parseCookies(cookie)
  return jar[COOKIE] !== undefined && hasSessionForm(jar[COOKIE]) ? jar[COOKIE] : undefined
}

/** As the parsers that people use: the first of a name counts, quotes go. */
export function parseCookies(header: string): Record<string, string> {
  const pairs = header.split(';').map((pair) => {
    const [name = '', ...value] = pair.split('=')
    return [
      name.trim(),
      value
        .join('=')
        .trim()
        .replace(/^"(.*)"$/, '$1'),
    ] as const
  })
  return Object.fromEntries(pairs.reverse())
}

function hasSessionForm(token: string): boolean {
  try {
    const [header, payload] = token.split('.', 2).map(decode)
    const { version = '3' } = header ?? {}
    return (
      typeof version === 'string' &&
      Number(version) >= 3 &&
      payload?.['sessionHandle'] !== undefined
    )
  } catch {
    return false
  }
}

async function sessionIn(token: string | undefined, issuer: TestIssuer): Promise<Session> {
  if (token === undefined) throw new VerifierError(401, 'unauthorised')
  await new Promise((resolve) => setImmediate(resolve))
  const [header = '', payload = '', signature = ''] = token.split('.')
  const key = keyRingOf(issuer).find(String(decode(header)['kid']))
  const signed = Buffer.from(`${header}.${payload}`)
  const isGenuine =
    key !== undefined &&
    verifySignature('sha256', signed, key.publicKey, Buffer.from(signature, 'base64url'))
  if (!isGenuine) throw new VerifierError(401, 'try refresh token')
  const { blocked, sessionHandle, sub } = decode(payload)
  if (blocked === true) throw new VerifierError(403, 'invalid claim')
  return { getHandle: () => String(sessionHandle), getUserId: () => String(sub) }
}

const decode = (segment: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(segment, 'base64url').toString())
