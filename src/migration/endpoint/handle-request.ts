import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { digestOfParts } from '../../base/digest.js'
import { headerValues, readToken } from '../../base/raw-headers.js'
import type { ImportUser } from '../core/import-user.js'
import type { EndpointSettings, MigrationLimiter } from './endpoint-options.js'
import {
  type CheckResult,
  type EndpointResult,
  need,
  pass,
  type RequestContext,
  refused,
  retrySeconds,
} from './endpoint-result.js'
import { findOrImport } from './import-account.js'
import { type Allowlist, type Issuer, issuerOf } from './issuer-options.js'
import { judgeRecord } from './legacy-user.js'
import type { MigrationRequest } from './migration-request.js'

/**
 * Checks a request and imports its user. The caller gets the refusal of the first check that fails.
 *
 * @throws Undecided if a dependency fails, ServiceAuthError if the wiring is wrong.
 */
export async function judge(
  request: Request,
  context: RequestContext,
  settings: EndpointSettings,
): Promise<EndpointResult> {
  const issuer = await authenticate(request, context, settings)
  if (!issuer.ok) return issuer
  const parsed = await readMigrationRequest(request, context, settings)
  if (!parsed.ok) return parsed
  const { name, allowed } = issuer.value
  const { externalUserId } = parsed.value
  context.externalUserId = externalUserId
  const limit = { limiter: settings.limits.user, key: keyDigest('user', name, externalUserId) }
  const limited = await judgeLimit(limit, context, 'user_limited')
  if (!limited.ok) return limited
  const user = await userFor({ request: parsed.value, allowed, issuer: name }, context, settings)
  if (!user.ok) return user
  return findOrImport({ ...user.value, externalUserId }, context, settings.core)
}

async function authenticate(
  request: Request,
  context: RequestContext,
  { issuers, limits }: EndpointSettings,
): Promise<CheckResult<Issuer>> {
  const presented = readToken(request)
  if (!presented.ok || presented.scheme !== 'Bearer') {
    const isMissing = !presented.ok && presented.reason === 'credentials_missing'
    return refused(isMissing ? 'credentials_missing' : 'authorization_malformed')
  }
  const { token } = presented
  const issuer = await need(context, 'tokens_unavailable', () => issuerOf(issuers, token))
  if (issuer === undefined) return refused('token_unknown')
  context.issuer = issuer.name
  const limit = { limiter: limits.credential, key: keyDigest('credential', issuer.name, token) }
  const limited = await judgeLimit(limit, context, 'credential_limited')
  return limited.ok ? pass(issuer) : limited
}

/** Returns the key of a limit. */
const keyDigest = (kind: 'credential' | 'user', issuer: string, id: string): string =>
  digestOfParts(['migrationEndpoint', kind, issuer, id])

async function judgeLimit(
  { limiter, key }: { readonly limiter: MigrationLimiter; readonly key: string },
  context: RequestContext,
  reason: 'credential_limited' | 'user_limited',
): Promise<CheckResult<undefined>> {
  const seconds = await need(context, 'limiter_unavailable', () => secondsToWait(limiter, key))
  return seconds === undefined ? pass(seconds) : refused(reason, { retryAfterSeconds: seconds })
}

/** Returns the seconds to wait, or `undefined` within the limit. @throws the error of a failed limiter. */
async function secondsToWait(limiter: MigrationLimiter, key: string): Promise<number | undefined> {
  try {
    await limiter.consume(key)
    return undefined
  } catch (error) {
    const milliseconds = (error as { msBeforeNext?: unknown } | null | undefined)?.msBeforeNext
    if (typeof milliseconds !== 'number') throw error
    return retrySeconds(milliseconds)
  }
}

async function readMigrationRequest(
  request: Request,
  context: RequestContext,
  { maxBodyBytes, readRequest }: EndpointSettings,
): Promise<CheckResult<MigrationRequest>> {
  if (request.method !== 'POST') return refused('method_not_allowed')
  if (!isJsonInUtf8(request)) return refused('media_type_unsupported')
  const body = await need(context, 'body_unfinished', () => readBody(request, maxBodyBytes))
  if (body.type === 'too_large') return refused('body_too_large')
  if (body.type === 'cut_off') return refused('body_cut_off')
  const parsed = readRequest(body.bytes)
  return parsed === undefined ? refused('body_malformed') : pass(parsed)
}

interface UserRequest {
  readonly request: MigrationRequest
  readonly allowed: Allowlist
  readonly issuer: string
}

/** Loads the user from the backend's own store, and checks it. */
async function userFor(
  { request, allowed, issuer }: UserRequest,
  context: RequestContext,
  { loadUser, acceptWarnings }: EndpointSettings,
): Promise<CheckResult<ImportUser>> {
  const judged = judgeRequest(request, allowed)
  if (!judged.ok) return judged
  const query = { issuer, ...structuredClone(request), signal: context.signal }
  const found = await need(context, 'user_unavailable', () => loadUser(query))
  return judgeRecord(found, { request, allowed }, acceptWarnings)
}

/** Checks the request against the allowlist, before the user is loaded. */
function judgeRequest(
  request: MigrationRequest,
  allowed: Allowlist,
): CheckResult<MigrationRequest> {
  const { organizationId, identities } = request
  if (organizationId !== undefined && !allowed.hasOrganization(organizationId)) {
    return refused('organization_not_allowed')
  }
  return identities.every(({ provider, connection }) => allowed.recipeOf(provider, connection))
    ? pass(request)
    : refused('connection_not_allowed')
}

const JSON_IN_UTF8 = /^application\/json[\t ]*(?:;[\t ]*charset=(?:utf-8|"utf-8")[\t ]*)?$/i

/** Whether the headers declare JSON in UTF-8 (RFC 8259), with a single `Content-Type` and no content coding. */
function isJsonInUtf8(request: IncomingMessage): boolean {
  const [type, ...otherTypes] = headerValues(request, 'content-type')
  const codings = headerValues(request, 'content-encoding')
  return (
    type !== undefined &&
    otherTypes.length === 0 &&
    JSON_IN_UTF8.test(type) &&
    codings.every((coding) => coding.toLowerCase() === 'identity')
  )
}

/** The bytes of a body, or why it could not be read. */
type BodyRead =
  | { readonly type: 'whole'; readonly bytes: Buffer }
  | { readonly type: 'too_large' }
  /** The connection was closed. */
  | { readonly type: 'cut_off' }

/**
 * Reads at most `maxBytes` bytes, and discards what follows. `express.json` would read an endless body to its end
 * before it reports that it is too large.
 *
 * @throws ServiceAuthError if a body parser has read the body.
 */
function readBody(request: IncomingMessage, maxBytes: number): Promise<BodyRead> {
  if (request.readableDidRead || request.readableEnded) {
    throw wrongWiring('migrationEndpoint reads the body itself: no parser may stand before it')
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      size += chunk.byteLength
      if (size > maxBytes) resolve({ type: 'too_large' })
      else chunks.push(chunk)
    }
    if (request.destroyed) resolve({ type: 'cut_off' })
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) resolve({ type: 'too_large' })
    request
      .on('data', take)
      .on('end', () => resolve({ type: 'whole', bytes: Buffer.concat(chunks) }))
      .on('close', () => resolve({ type: 'cut_off' }))
      // Without a listener, a later `error` event would end the process.
      .on('error', () => resolve({ type: 'cut_off' }))
  })
}
