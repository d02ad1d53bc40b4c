import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { digestOfParts } from '../../base/digest.js'
import { headerValues, readToken } from '../../base/raw-headers.js'
import type { ImportUser } from '../core/import-user.js'
import type { EndpointSettings, MigrationLimiter } from './endpoint-options.js'
import { type EndpointResult, need, type RequestContext, refused } from './endpoint-result.js'
import { findOrImport } from './import-account.js'
import { type Issuer, issuerOf } from './issuer-options.js'
import { judgeRecord } from './legacy-user.js'
import type { MigrationRequest } from './migration-request.js'

/**
 * Checks a request and imports its user. The caller gets the refusal of the first check that fails.
 *
 * @throws RequestEnded if a check refuses the request or a dependency fails, ServiceAuthError if the wiring is wrong.
 */
export async function judge(
  request: Request,
  context: RequestContext,
  settings: EndpointSettings,
): Promise<EndpointResult> {
  const issuer = await authenticate(request, context, settings)
  const asked = await readMigrationRequest(request, context, settings)
  const { externalUserId } = asked
  context.externalUserId = externalUserId
  const key = keyDigest('user', issuer.name, externalUserId)
  await consume({ limiter: settings.limits.user, key }, context, 'user_limited')
  const user = await loadRecord({ asked, issuer }, context, settings)
  return findOrImport({ ...user, externalUserId }, context, settings.core)
}

async function authenticate(
  request: Request,
  context: RequestContext,
  { issuers, limits }: EndpointSettings,
): Promise<Issuer> {
  const presented = readToken(request)
  if (!presented.ok || presented.scheme !== 'Bearer') {
    const isMissing = !presented.ok && presented.reason === 'credentials_missing'
    throw refused(isMissing ? 'credentials_missing' : 'authorization_malformed')
  }
  const { token } = presented
  const issuer = await need(context, 'tokens_unavailable', () => issuerOf(issuers, token))
  if (issuer === undefined) throw refused('token_unknown')
  context.issuer = issuer.name
  const key = keyDigest('credential', issuer.name, token)
  await consume({ limiter: limits.credential, key }, context, 'credential_limited')
  return issuer
}

/** Returns the key of a limit. */
const keyDigest = (kind: 'credential' | 'user', issuer: string, id: string): string =>
  digestOfParts(['migrationEndpoint', kind, issuer, id])

/** The largest `Retry-After`, so that clients need not parse longer numbers. */
const MAX_RETRY_SECONDS = 31_536_000

async function consume(
  { limiter, key }: { readonly limiter: MigrationLimiter; readonly key: string },
  context: RequestContext,
  reason: 'credential_limited' | 'user_limited',
): Promise<void> {
  await need(context, 'limiter_unavailable', async () => {
    try {
      await limiter.consume(key)
    } catch (error) {
      const waitMs = (error as { msBeforeNext?: unknown } | null | undefined)?.msBeforeNext
      if (typeof waitMs !== 'number') throw error
      const seconds = Math.max(1, Math.ceil(waitMs / 1000) || 1)
      throw refused(reason, { retryAfterSeconds: Math.min(MAX_RETRY_SECONDS, seconds) })
    }
  })
}

async function readMigrationRequest(
  request: Request,
  context: RequestContext,
  { maxBodyBytes, readRequest }: EndpointSettings,
): Promise<MigrationRequest> {
  if (request.method !== 'POST') throw refused('method_not_allowed')
  if (!isJsonInUtf8(request)) throw refused('media_type_unsupported')
  const bytes = await need(context, 'body_unfinished', () => readBody(request, maxBodyBytes))
  const asked = readRequest(bytes)
  if (asked === undefined) throw refused('body_malformed')
  return asked
}

/** Loads the user from the backend's own store, and checks it. */
async function loadRecord(
  { asked, issuer }: { readonly asked: MigrationRequest; readonly issuer: Issuer },
  context: RequestContext,
  { loadUser, acceptWarnings }: EndpointSettings,
): Promise<ImportUser> {
  const { name, allowed } = issuer
  const { organizationId, identities } = asked
  if (organizationId !== undefined && !allowed.hasOrganization(organizationId)) {
    throw refused('organization_not_allowed')
  }
  if (!identities.every(({ provider, connection }) => allowed.recipeOf(provider, connection))) {
    throw refused('connection_not_allowed')
  }
  const query = { issuer: name, ...structuredClone(asked), signal: context.signal }
  const found = await need(context, 'user_unavailable', () => loadUser(query))
  return judgeRecord(found, { asked, allowed }, acceptWarnings)
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

/**
 * Reads at most `maxBytes` bytes, and discards what follows. `express.json` would read an endless body to its end
 * before it reports that it is too large.
 *
 * @throws ServiceAuthError if a body parser has read the body. Rejects with RequestEnded if the body is too large or
 * the connection is closed.
 */
function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (request.readableDidRead || request.readableEnded) {
    throw wrongWiring('migrationEndpoint reads the body itself: no parser may stand before it')
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const cutOff = (): void => reject(refused('body_cut_off'))
    const take = (chunk: Buffer): void => {
      size += chunk.byteLength
      if (size > maxBytes) reject(refused('body_too_large'))
      else chunks.push(chunk)
    }
    if (request.destroyed) cutOff()
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) reject(refused('body_too_large'))
    request
      .on('data', take)
      .on('end', () => resolve(Buffer.concat(chunks)))
      .on('close', cutOff)
      // Without a listener, a later `error` event would end the process.
      .on('error', cutOff)
  })
}
