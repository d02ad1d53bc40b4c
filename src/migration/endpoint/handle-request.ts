import type { Request } from 'express'
import { readBearer } from '../../base/raw-headers.js'
import type { ImportUser } from '../core/import-user.js'
import type { UserWarningCode } from '../record-validation/user-finding.js'
import type { Allowlist } from './allowlist.js'
import { judgeRecord, judgeRequest } from './check-record.js'
import { pass, refused, type Step, type Verdict } from './endpoint-result.js'
import { holderOf } from './hook-tokens.js'
import { importUnderKey, type KeySettings } from './import-under-key.js'
import type { Issuer } from './issuer-options.js'
import type { LoadUser } from './legacy-user.js'
import { credentialKey, type MigrationLimiter, recordKey, secondsToWait, userKey } from './limit.js'
import type { MigrationRequest } from './migration-request.js'
import { isJsonInUtf8, readBody } from './read-json-body.js'
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
