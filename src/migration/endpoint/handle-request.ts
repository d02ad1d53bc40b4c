import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { headerValues, readBearer } from '../../base/raw-headers.js'
import type { ImportUser } from '../core/import-user.js'
import type { UserWarningCode } from '../record-validation/user-finding.js'
import type { Allowlist } from './allowlist.js'
import { pass, refused, type Step, type Verdict } from './endpoint-result.js'
import { holderOf } from './hook-tokens.js'
import { importUnderKey, type KeySettings } from './import-under-key.js'
import type { Issuer } from './issuer-options.js'
import { judgeRecord, type LoadUser } from './legacy-user.js'
import { credentialKey, type MigrationLimiter, recordKey, secondsToWait, userKey } from './limit.js'
import type { MigrationRequest } from './migration-request.js'
import { type Course, need } from './request-context.js'

export interface EndpointSettings extends KeySettings {
  readonly issuers: readonly Issuer[]
  readonly loadUser: LoadUser
  readonly limits: { readonly credential: MigrationLimiter; readonly user: MigrationLimiter }
  readonly acceptWarnings: ReadonlySet<UserWarningCode>
  readonly readRequest: (bytes: Uint8Array) => MigrationRequest | undefined
  readonly maxBodyBytes: number
}

/**
 * Checks a request and imports its user. If several checks fail, the order decides which refusal the caller
 * gets.
 *
 * @throws Undecided if a dependency fails, ServiceAuthError if the wiring is wrong.
 */
export async function judge(
  request: Request,
  course: Course,
  settings: EndpointSettings,
): Promise<Verdict> {
  const issuer = await authenticate(request, course, settings)
  if (!issuer.ok) return issuer
  const asked = await readAsked(request, course, settings)
  if (!asked.ok) return asked
  const { name, allowed } = issuer.value
  const { externalUserId } = asked.value
  course.externalUserId = externalUserId
  const limit = { limiter: settings.limits.user, key: userKey(name, externalUserId) }
  const limited = await judgeLimit(limit, course, 'user_limited')
  if (!limited.ok) return limited
  const user = await userFor({ request: asked.value, allowed, issuer: name }, course, settings)
  if (!user.ok) return user
  const record = recordKey(name, externalUserId)
  return importUnderKey({ record, externalUserId, user: user.value }, course, settings)
}

async function authenticate(
  request: Request,
  course: Course,
  { issuers, limits }: EndpointSettings,
): Promise<Step<Issuer>> {
  const bearer = readBearer(request)
  if (!bearer.ok) {
    const isMissing = bearer.reason === 'credentials_missing'
    return refused(isMissing ? 'credentials_missing' : 'authorization_malformed')
  }
  const issuer = await need(course, 'tokens_unavailable', () => holderOf(issuers, bearer.value))
  if (issuer === undefined) return refused('token_unknown')
  course.issuer = issuer.name
  const limit = { limiter: limits.credential, key: credentialKey(issuer.name, bearer.value) }
  const limited = await judgeLimit(limit, course, 'credential_limited')
  return limited.ok ? pass(issuer) : limited
}

async function judgeLimit(
  { limiter, key }: { readonly limiter: MigrationLimiter; readonly key: string },
  course: Course,
  reason: 'credential_limited' | 'user_limited',
): Promise<Step<undefined>> {
  const seconds = await need(course, 'limiter_unavailable', () => secondsToWait(limiter, key))
  return seconds === undefined ? pass(seconds) : refused(reason, { retryAfterSeconds: seconds })
}

async function readAsked(
  request: Request,
  course: Course,
  { maxBodyBytes, readRequest }: EndpointSettings,
): Promise<Step<MigrationRequest>> {
  if (request.method !== 'POST') return refused('method_not_allowed')
  if (!isJsonInUtf8(request)) return refused('media_type_unsupported')
  const read = () => readBody(request, maxBodyBytes, course.signal)
  const body = await need(course, 'body_unfinished', read)
  if (body.type === 'too_large') return refused('body_too_large')
  if (body.type === 'cut_off') return refused('body_cut_off')
  const asked = readRequest(body.bytes)
  return asked === undefined ? refused('body_malformed') : pass(asked)
}

interface Asked {
  readonly request: MigrationRequest
  readonly allowed: Allowlist
  readonly issuer: string
}

/** Loads the user from the backend's own store, and checks it. */
async function userFor(
  { request, allowed, issuer }: Asked,
  course: Course,
  { loadUser, acceptWarnings }: EndpointSettings,
): Promise<Step<ImportUser>> {
  const judged = judgeRequest(request, allowed)
  if (!judged.ok) return judged
  const query = { issuer, ...structuredClone(request), signal: course.signal }
  const found = await need(course, 'user_unavailable', () => loadUser(query))
  return judgeRecord(found, { request, allowed }, acceptWarnings)
}

/** Checks the request against the allowlist, before the user is loaded. */
function judgeRequest(request: MigrationRequest, allowed: Allowlist): Step<MigrationRequest> {
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
  /** The connection was closed, or the signal aborted. */
  | { readonly type: 'cut_off' }

/**
 * Reads at most `maxBytes` bytes. Later bytes, and bytes after the signal aborted, are discarded.
 *
 * @throws ServiceAuthError if the body was read before.
 */
async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<BodyRead> {
  if (request.readableDidRead || request.readableEnded) {
    throw wrongWiring('migrationEndpoint reads the body itself: no parser may stand before it')
  }
  if (Number(headerValues(request, 'content-length')[0] ?? 0) > maxBytes) {
    request.resume()
    return { type: 'too_large' }
  }
  return collect(request, maxBytes, signal)
}

function collect(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<BodyRead> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (read: BodyRead): void => {
      request.off('data', take).off('end', end).off('close', cutOff).off('error', cutOff)
      // A later `error` event needs a listener.
      request.on('error', () => {})
      signal.removeEventListener('abort', cutOff)
      request.resume()
      resolve(read)
    }
    const take = (chunk: Buffer): void => {
      size += chunk.byteLength
      if (size > maxBytes) settle({ type: 'too_large' })
      else chunks.push(chunk)
    }
    const end = (): void => settle({ type: 'whole', bytes: Buffer.concat(chunks) })
    const cutOff = (): void => settle({ type: 'cut_off' })
    if (request.destroyed || signal.aborted) {
      cutOff()
      return
    }
    request.on('data', take).on('end', end).on('close', cutOff).on('error', cutOff)
    signal.addEventListener('abort', cutOff)
  })
}
