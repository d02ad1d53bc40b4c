import { randomUUID } from 'node:crypto'
import { callStore } from '../../base/decision/store-call.js'
import {
  checkReservation,
  type Ending,
  type Reservation,
  type ReservationRequest,
  type Run,
  renewRun,
  settleRun,
} from '../../idempotency/leased/idempotency-store.js'
import { startLease } from '../../idempotency/leased/lease.js'
import { importOne } from '../account/import-one.js'
import type { CoreClient, CoreLoginMethod, CoreUser } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import { type LoginSource, recipeKeysOf } from '../record-validation/login-keys.js'
import type { EndpointSettings } from './endpoint-options.js'
import {
  type EndpointResult,
  faultsOf,
  need,
  type RequestContext,
  refused,
  retrySeconds,
  undecided,
} from './endpoint-result.js'
import { reportStoreFailure } from './report-dependencies.js'
import { keptAnswer } from './send-answer.js'

/** Longer than a core client may take for one user. */
const MAX_RUN_MS = 3_600_000

/** A user, its id, and the name of its idempotency record. */
interface KeyedUser {
  readonly recordId: string
  readonly externalUserId: string
  readonly user: ImportUser
}

/**
 * Imports the user under an idempotency key. The key only spares the core repeated calls: the core itself prevents a
 * second account. So an abandoned run is repeated, and after a stored result the account is checked again, because
 * its logins may have changed since.
 */
export async function importUnderKey(
  keyed: KeyedUser,
  context: RequestContext,
  settings: EndpointSettings,
): Promise<EndpointResult> {
  const { core, store, leaseMs, retentionMs } = settings
  const { recordId, externalUserId, user } = keyed
  const request: ReservationRequest = {
    recordId,
    owner: randomUUID(),
    // Covers only the user: a retry may name other logins, because one may have been added since.
    fingerprint: recordId,
    leaseMs,
    retentionMs,
    rerunAbandoned: true,
  }
  const reservedAt = performance.now()
  const reservation = await need(context, 'store_unavailable', () =>
    reserve(settings, request, context),
  )
  const granted = checkReservation(request, reservation, store)
  if ('run' in granted) {
    const { run } = granted
    context.awaited = 'outcome_unknown'
    return underLease({ settings, run, reservedAt }, context, () => importAccount(core, user))
  }
  const { existing } = granted
  if (existing.outcome === 'running') {
    return refused('in_progress', { retryAfterSeconds: retrySeconds(existing.leaseLeftMs) })
  }
  const found = await need(context, 'core_unavailable', () =>
    findAccount(core, externalUserId, user),
  )
  if (found !== undefined) return found
  // No account has the external id, for example because it was deleted since the result was stored.
  context.awaited = 'outcome_unknown'
  return importAccount(core, user)
}

/** Reserves the key. A reservation that arrives after the timeout is released. */
async function reserve(
  settings: EndpointSettings,
  request: ReservationRequest,
  { signal }: RequestContext,
): Promise<Reservation> {
  const { store } = settings
  const reservation = await callStore('reserve', () => store.reserve(request))
  const late = signal.aborted ? checkReservation(request, reservation, store) : undefined
  if (late !== undefined && 'run' in late) await settle(settings, late.run, { type: 'released' })
  return reservation
}

interface Held {
  readonly settings: EndpointSettings
  readonly run: Run
  /** Time of the reservation request, from `performance.now`. */
  readonly reservedAt: number
}

/** Renews the lease until the work ends, even after the timeout of the request. */
async function underLease(
  { settings, run, reservedAt }: Held,
  context: RequestContext,
  work: () => Promise<EndpointResult>,
): Promise<EndpointResult> {
  const times = { leaseMs: run.leaseMs, maxRunMs: MAX_RUN_MS }
  const lease = startLease(times, reservedAt, () => renew(settings, run))
  const result = await work().finally(lease.stopRenewing)
  context.result = result
  const ending: Ending =
    result.type === 'accepted'
      ? { type: 'finished', result: keptAnswer(result.userId) }
      : { type: 'released' }
  await settle(settings, run, ending)
  return result
}

async function renew(settings: EndpointSettings, run: Run): Promise<boolean> {
  try {
    return await renewRun(settings.store, run)
  } catch (error) {
    reportStoreFailure(error, settings)
    throw error
  }
}

/** Never rejects: the result does not change. An unsettled run ends with its lease; a retry looks up the account. */
async function settle(settings: EndpointSettings, run: Run, ending: Ending): Promise<void> {
  try {
    await settleRun(settings.store, run, ending)
  } catch (error) {
    reportStoreFailure(error, settings)
  }
}

/** Creates or finds the account. Never rejects. */
export async function importAccount(core: CoreClient, user: ImportUser): Promise<EndpointResult> {
  try {
    const imported = await importOne(core, user)
    switch (imported.outcome) {
      case 'created':
        return { type: 'accepted', reason: 'created', userId: imported.userId }
      case 'existing': {
        const account = await core.user(imported.coreUserId)
        return account === undefined ? undecided(UNKNOWN) : judgeAccount(account, user)
      }
      case 'conflict':
        return refused('account_conflict', { faults: imported.codes })
      case 'invalid':
        return refused('record_invalid', { faults: faultsOf(imported.errors) })
    }
  } catch (error) {
    return undecided(UNKNOWN, error)
  }
}

/** Checks the account under the external id. Returns `undefined` if there is none. */
async function findAccount(
  core: CoreClient,
  externalUserId: string,
  user: ImportUser,
): Promise<EndpointResult | undefined> {
  const coreUserId = await core.coreIdOf(externalUserId)
  const account = coreUserId === undefined ? undefined : await core.user(coreUserId)
  return account && judgeAccount(account, user)
}

/** Also used if the core was not reached, because an earlier request may have created the account. */
const UNKNOWN = 'outcome_unknown'

/** Checks the logins, because external ids are global and the account may belong to a user of another issuer. */
const judgeAccount = (account: CoreUser, user: ImportUser): EndpointResult =>
  holdsLoginOf(account, user)
    ? { type: 'accepted', reason: 'existing', userId: account.id }
    : refused('account_foreign')

/**
 * Whether a login of the record can sign in to the account: the same recipe, a common tenant, and the same
 * e-mail address, phone number or third-party login, in the form that the core stores.
 */
export function holdsLoginOf(account: CoreUser, record: ImportUser): boolean {
  const held = new Set(recipeKeysOf({ loginMethods: account.loginMethods.map(toLoginSource) }))
  return recipeKeysOf(record).some((key) => held.has(key))
}

const toLoginSource = ({ thirdParty, ...method }: CoreLoginMethod): LoginSource =>
  thirdParty === undefined
    ? method
    : { ...method, thirdPartyId: thirdParty.id, thirdPartyUserId: thirdParty.userId }
