import { timingSafeEqual } from 'node:crypto'
import type { Request } from 'express'
import type {
  MigrationAcceptance,
  MigrationUndecided,
} from '../../base/decision/migration-event.js'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { digestOfParts } from '../../base/digest.js'
import { readToken } from '../../base/raw-headers.js'
import { hash } from '../../base/supported-node.js'
import { findAccount } from '../account/find-account.js'
import { importOne } from '../account/import-one.js'
import type { CoreClient, CoreUser } from '../core/core-client.js'
import { CoreError } from '../core/core-error.js'
import type { ImportUser } from '../core/import-user.js'
import { holderOf, recipeKeysOf } from '../record-validation/login-keys.js'
import {
  areTokens,
  type EndpointSettings,
  type Issuer,
  isSameConnection,
} from './endpoint-options.js'
import { userToImport } from './legacy-user.js'
import {
  isJsonInUtf8,
  type MigrationRequest,
  parseMigrationRequest,
  readBody,
} from './migration-request.js'
import { RequestEnded, recordInvalid } from './request-ended.js'

/** A request that is being judged: what is known of it, and what it waits for. */
export interface RequestContext {
  readonly settings: EndpointSettings
  /** Aborts when the request is answered. */
  readonly signal: AbortSignal
  /** The reason of the 503 if the timeout occurs now. */
  awaited: MigrationUndecided
  issuer?: string
  externalUserId?: string
}

/** There is an account. */
export interface Accepted {
  readonly reason: MigrationAcceptance
  /** The core's `user.id`. */
  readonly userId: string
}

/**
 * Checks a request and imports its user. The caller gets the refusal of the first check that fails.
 *
 * @throws RequestEnded if a check refuses the request or a dependency fails, ServiceAuthError if the wiring is wrong.
 */
export async function judge(request: Request, context: RequestContext): Promise<Accepted> {
  const { settings } = context
  const issuer = await authenticate(request, context)
  const asked = await readRequest(request, context)
  const { externalUserId } = asked
  context.externalUserId = externalUserId
  await consume('user', [issuer.name, externalUserId], context)
  assertAllowed(asked, issuer)
  const { acceptWarnings, core } = settings
  const query = { issuer: issuer.name, ...asked, signal: context.signal }
  const found = await need(context, 'user_unavailable', () => settings.loadUser(query))
  const user = userToImport(found, asked, { issuer, acceptWarnings })
  const existing = await need(context, 'core_unavailable', () => findAccount(core, externalUserId))
  if (existing !== undefined) return existingAccount(existing.user, user)
  // Unknown even if the core is not reached, because an earlier request may have created the account.
  return need(context, 'outcome_unknown', () => importAccount(core, user))
}

/** The older service is not asked about what its issuer may not send. @throws RequestEnded */
function assertAllowed(
  { organizationId, identities }: MigrationRequest,
  { organizations = {}, connections }: Issuer,
): void {
  if (organizationId !== undefined && !Object.hasOwn(organizations, organizationId)) {
    throw new RequestEnded('organization_not_allowed')
  }
  if (!identities.every((asked) => connections.some(isSameConnection(asked)))) {
    throw new RequestEnded('connection_not_allowed')
  }
}

/**
 * Awaits a dependency.
 *
 * @throws RequestEnded if it fails. Rejects with the reason of the signal after the timeout.
 */
async function need<T>(
  context: RequestContext,
  reason: MigrationUndecided,
  work: () => T | Promise<T>,
): Promise<T> {
  context.awaited = reason
  let value: T
  try {
    value = await work()
  } catch (error) {
    if (error instanceof RequestEnded) throw error
    throw new RequestEnded(reason, error instanceof CoreError ? { faults: [error.code] } : {})
  }
  context.signal.throwIfAborted()
  return value
}

async function authenticate(request: Request, context: RequestContext): Promise<Issuer> {
  const presented = readToken(request)
  if (!presented.ok && presented.reason === 'credentials_missing') {
    throw new RequestEnded('credentials_missing')
  }
  if (!presented.ok || presented.scheme !== 'Bearer') {
    throw new RequestEnded('authorization_malformed')
  }
  const { token } = presented
  const { issuers } = context.settings
  const lists = await need(context, 'tokens_unavailable', () => Promise.all(issuers.map(tokensOf)))
  const [issuer, ...others] = issuers.filter((_, index) => isAmong(lists[index] ?? [], token))
  if (others.length > 0) throw wrongWiring('migrationEndpoint: several issuers have the same token')
  if (issuer === undefined) throw new RequestEnded('token_unknown')
  context.issuer = issuer.name
  await consume('credential', [issuer.name, token], context)
  return issuer
}

async function tokensOf({ tokens }: Issuer): Promise<readonly string[]> {
  const given: unknown = typeof tokens === 'function' ? await tokens() : tokens
  if (areTokens(given)) return given
  throw new TypeError('tokens must return a list of 32 or more visible ASCII characters each')
}

/** Compares all tokens, each in constant time. */
function isAmong(tokens: readonly string[], presented: string): boolean {
  const digest = hash('sha256', presented, 'buffer')
  const equal = tokens.filter((token) => timingSafeEqual(hash('sha256', token, 'buffer'), digest))
  return equal.length > 0
}

/** The largest `Retry-After`, so that clients need not parse longer numbers. */
const MAX_RETRY_SECONDS = 31_536_000

async function consume(
  kind: 'credential' | 'user',
  id: readonly string[],
  context: RequestContext,
): Promise<void> {
  const key = digestOfParts(['migrationEndpoint', kind, ...id])
  await need(context, 'limiter_unavailable', async () => {
    try {
      await context.settings.limits[kind].consume(key)
    } catch (error) {
      const waitMs = (error as { msBeforeNext?: unknown } | null | undefined)?.msBeforeNext
      if (typeof waitMs !== 'number') throw error
      const seconds = Math.max(1, Math.ceil(waitMs / 1000) || 1)
      const retryAfterSeconds = Math.min(MAX_RETRY_SECONDS, seconds)
      throw new RequestEnded(`${kind}_limited`, { retryAfterSeconds })
    }
  })
}

async function readRequest(request: Request, context: RequestContext): Promise<MigrationRequest> {
  const { maxBodyBytes, organizationField } = context.settings
  if (request.method !== 'POST') throw new RequestEnded('method_not_allowed')
  if (!isJsonInUtf8(request)) throw new RequestEnded('media_type_unsupported')
  if (request.readableDidRead || request.readableEnded) {
    throw wrongWiring('migrationEndpoint reads the body itself: no parser may stand before it')
  }
  const bytes = await need(context, 'body_unfinished', () => readBody(request, maxBodyBytes))
  return parseMigrationRequest(bytes, organizationField)
}

/**
 * Creates or finds the account. Of equal requests at once, one creates it: the external id is unique in the core, so
 * each other import is refused there and finds it. The import goes on after the timeout of the request.
 *
 * @throws RequestEnded if the user gets none, CoreError if the core fails.
 */
export async function importAccount(core: CoreClient, user: ImportUser): Promise<Accepted> {
  const imported = await importOne(core, user)
  if (imported.outcome === 'invalid') throw recordInvalid(imported.errors)
  if (imported.outcome === 'conflict') {
    throw new RequestEnded('account_conflict', { faults: imported.codes })
  }
  if (imported.outcome === 'created') return { reason: 'created', userId: imported.userId }
  const account = await core.user(imported.coreUserId)
  if (account === undefined) throw new RequestEnded('outcome_unknown')
  return existingAccount(account, user)
}

/** Checks the logins, because external ids are global and the account may belong to a user of another issuer. */
function existingAccount(account: CoreUser, user: ImportUser): Accepted {
  if (!hasLoginOf(account, user)) throw new RequestEnded('account_foreign')
  return { reason: 'existing', userId: account.id }
}

/**
 * Whether a login of the record can sign in to the account: the same recipe, a common tenant, and the same
 * e-mail address, phone number or third-party login, in the form that the core stores.
 */
export function hasLoginOf(account: CoreUser, record: ImportUser): boolean {
  const held = new Set(recipeKeysOf(holderOf(account)))
  return recipeKeysOf(record).some((key) => held.has(key))
}
