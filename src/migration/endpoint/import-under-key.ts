import { randomUUID } from 'node:crypto'
import { callStore } from '../../base/decision/store-call.js'
import type {
  Ending,
  IdempotencyStore,
  Reservation,
  ReservationRequest,
  Run,
} from '../../idempotency/leased/idempotency-store.js'
import { keepLease } from '../../idempotency/leased/lease.js'
import type { CoreClient } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import type { CoreLoginMethod, CoreUser } from '../core/reply.js'
import { importOne } from '../import-one/import-one.js'
import { type LoginSource, recipeKeysOf } from '../record-validation/login-keys.js'
import { faultsOf, refused, retrySeconds, undecided, type Verdict } from './endpoint-result.js'
import { type Course, need } from './request-context.js'
import { keptAnswer } from './send-answer.js'

/** Above the time that a core client may take for one user. */
const MAX_RUN_MS = 3_600_000

export interface KeySettings {
  readonly core: CoreClient
  readonly store: IdempotencyStore
  readonly leaseMs: number
  readonly retentionMs: number
}

/** A user, its id, and the name of the record of its idempotency key. */
export interface KeyedUser {
  readonly record: string
  readonly externalUserId: string
  readonly user: ImportUser
}

/**
 * Makes the account while nobody else does. The key spares the core equal calls; that no second
 * account comes of them is the core's doing. So an abandoned run is run again, and a kept result only
 * says that the account is there already: what it holds may have changed since.
 */
export async function importUnderKey(
  keyed: KeyedUser,
  course: Course,
  { core, store, leaseMs, retentionMs }: KeySettings,
): Promise<Verdict> {
  const { record: key, externalUserId, user } = keyed
  const request: ReservationRequest = {
    key,
    owner: randomUUID(),
    // What else a request says may differ in a retry: a login may have been added since.
    fingerprint: key,
    leaseMs,
    retentionMs,
    rerunAbandoned: true,
  }
  const reservedAt = performance.now()
  const found = await need(course, 'store_unavailable', () => reserve(store, request, course))
  switch (found.outcome) {
    case 'reserved': {
      course.awaited = 'outcome_unknown'
      const run = runOf(request, found.fence)
      return underLease({ store, run, reservedAt }, course, () => importAccount(core, user))
    }
    case 'running':
      return refused('in_progress', { retryAfterSeconds: retrySeconds(found.leaseLeftMs) })
    case 'finished':
    case 'result_not_stored':
    case 'mismatch':
    case 'abandoned':
    case 'unreadable': {
      const find = () => findAccount(core, externalUserId, user)
      const known = await need(course, 'core_unavailable', find)
      if (known !== undefined) return known
      course.awaited = 'outcome_unknown'
      return importAccount(core, user)
    }
    default:
      throw new TypeError('store.reserve resolved to none of the outcomes of a reservation')
  }
}

/** A reservation that comes when the time is over is given back. */
async function reserve(
  store: IdempotencyStore,
  request: ReservationRequest,
  { signal }: Course,
): Promise<Reservation> {
  const found = await callStore('reserve', () => store.reserve(request))
  if (found.outcome === 'reserved' && signal.aborted) {
    await settle(store, runOf(request, found.fence), { type: 'released' })
  }
  return found
}

function runOf({ rerunAbandoned: _, ...run }: ReservationRequest, fence: number): Run {
  if (!Number.isSafeInteger(fence)) {
    throw new TypeError('store.reserve gave no safe integer as fence')
  }
  return { ...run, fence }
}

interface Held {
  readonly store: IdempotencyStore
  readonly run: Run
  /** When the reservation was asked for, of `performance.now`. */
  readonly reservedAt: number
}

/** Keeps the key for as long as the work takes, also when nobody waits for it any more. */
async function underLease(
  { store, run, reservedAt }: Held,
  course: Course,
  work: () => Promise<Verdict>,
): Promise<Verdict> {
  const times = { leaseMs: run.leaseMs, maxRunMs: MAX_RUN_MS }
  const lease = keepLease(times, reservedAt, () => callStore('renew', () => store.renew(run)))
  const verdict = await work().finally(lease.stop)
  course.verdict = verdict
  const ending: Ending =
    verdict.type === 'accepted'
      ? { type: 'finished', result: keptAnswer(verdict.userId) }
      : { type: 'released' }
  await settle(store, run, ending)
  return verdict
}

/** Never rejects: the verdict stands, and what is not settled ends with its lease. */
async function settle(store: IdempotencyStore, run: Run, ending: Ending): Promise<void> {
  try {
    await callStore('settle', () => store.settle(run, ending))
  } catch {
    // A retry finds the account, or none.
  }
}

/** Makes the account, or finds it. Never rejects. */
export async function importAccount(core: CoreClient, user: ImportUser): Promise<Verdict> {
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

/** What the account under the external id says; `undefined` when there is none. */
async function findAccount(
  core: CoreClient,
  externalUserId: string,
  user: ImportUser,
): Promise<Verdict | undefined> {
  const coreUserId = await core.coreIdOf(externalUserId)
  const account = coreUserId === undefined ? undefined : await core.user(coreUserId)
  return account && judgeAccount(account, user)
}

/** Also where the core was not reached: an earlier request may have made the account. */
const UNKNOWN = 'outcome_unknown'

/** External ids are global in the core, issuers are not: the account may be of another issuer's user. */
const judgeAccount = (account: CoreUser, user: ImportUser): Verdict =>
  holdsLoginOf(account, user)
    ? { type: 'accepted', reason: 'existing', userId: account.id }
    : refused('account_foreign')

/**
 * Whether the account can be signed in to by a login of the record: the same recipe, a tenant in
 * common, and the same e-mail address, phone number or provider's pair, as the core keeps them.
 */
export function holdsLoginOf(account: CoreUser, record: ImportUser): boolean {
  const held = new Set(recipeKeysOf({ loginMethods: account.loginMethods.map(sourceOf) }))
  return recipeKeysOf(record).some((key) => held.has(key))
}

const sourceOf = ({ thirdParty, ...method }: CoreLoginMethod): LoginSource =>
  thirdParty === undefined
    ? method
    : { ...method, thirdPartyId: thirdParty.id, thirdPartyUserId: thirdParty.userId }
