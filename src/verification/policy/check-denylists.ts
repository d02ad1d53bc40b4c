import {
  DependencyError,
  type DependencyFailure,
  dependencyOf,
} from '../../base/decision/dependency.js'
import { ignoreRejection } from '../../base/decision/observers.js'
import { type Denial, deny } from '../../base/decision/reason.js'
import type { DeniedLists, LiveDenylist } from '../denylist/live-denylist.js'
import type { ServiceIdentity } from './identity.js'
import type { Policy } from './policy.js'

/** The parts of a verified token that can be denied. */
interface DeniableToken extends Pick<ServiceIdentity, 'name' | 'keyId'> {
  readonly tokenId?: string | undefined
  readonly issuedAt?: number | undefined
}

/** In order of precedence: 401, then 403, then 503, if the list is not known. */
const REASONS = [
  'key_denied',
  'token_denied',
  'token_issued_too_early',
  'caller_denied',
  'denylist_unavailable',
] as const

type DenylistReason = (typeof REASONS)[number]

/**
 * Checks a token whose signature and claims are valid against the denylists of the policy, as if they were
 * one list: a token that any list denies is refused, even if another list is unavailable.
 *
 * @throws ServiceAuthError if a live denylist throws or returns something other than lists.
 */
export const checkDenylists = (token: DeniableToken, policy: Policy): Denial | undefined =>
  checkLiveDenylists(token, policy, reasonIn(policy.denied, token))

/**
 * Checks a token against the live denylists. `earlier` is the result of the fixed ones. A cached token needs none: it
 * has passed them, and they never change.
 *
 * @throws ServiceAuthError as `checkDenylists` does.
 */
export function checkLiveDenylists(
  token: DeniableToken,
  policy: Policy,
  earlier?: DenylistReason,
): Denial | undefined {
  const hit = findDenylistHit(policy, (lists) => reasonIn(lists, token), earlier)
  return hit && deny(hit.reason, evidenceOf(hit.reason, token), hit.failure)
}

/**
 * Checks a key against the denylists, whatever it signed. The denial has no evidence: until the signature is verified,
 * the key id could be any text of the caller.
 *
 * @throws ServiceAuthError as `checkDenylists` does.
 */
export function checkKeyDenylists(
  keyId: string,
  policy: Pick<Policy, 'denied' | 'issuer' | 'liveDenylists'>,
): Denial | undefined {
  const reasonOf = ({ keys }: DeniedLists) => (isIn(keys, keyId) ? 'key_denied' : undefined)
  const hit = findDenylistHit(policy, reasonOf, reasonOf(policy.denied))
  return hit && deny(hit.reason, undefined, hit.failure)
}

interface DenylistHit {
  readonly reason: DenylistReason
  /** Present if the reason is that a denylist is unavailable. */
  readonly failure?: DependencyFailure
}

/** The most urgent reason of `earlier` and the live denylists. */
function findDenylistHit(
  { issuer, liveDenylists }: Pick<Policy, 'issuer' | 'liveDenylists'>,
  reasonOf: (lists: DeniedLists) => DenylistReason | undefined,
  earlier: DenylistReason | undefined,
): DenylistHit | undefined {
  let reason = earlier
  let unavailable: LiveDenylist | undefined
  for (const denylist of liveDenylists) {
    const found = reasonNow(denylist, issuer, reasonOf)
    if (found === 'denylist_unavailable') unavailable ??= denylist
    reason = moreUrgent(reason, found)
  }
  if (reason === undefined) return undefined
  if (reason !== 'denylist_unavailable' || unavailable === undefined) return { reason }
  const dependency = dependencyOf('denylist', unavailable)
  return { reason, failure: { dependency, message: 'a live denylist is unknown' } }
}

function moreUrgent(
  one: DenylistReason | undefined,
  other: DenylistReason | undefined,
): DenylistReason | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return REASONS.indexOf(one) <= REASONS.indexOf(other) ? one : other
}

/**
 * Asks the live denylists to catch up, before `lists` is asked. Returns a promise to wait for, which never rejects;
 * `undefined` if the decision can be made now.
 *
 * @throws ServiceAuthError if a live denylist throws, or returns something other than a promise or `undefined`.
 */
export function catchUp({
  liveDenylists,
}: Pick<Policy, 'liveDenylists'>): Promise<unknown> | undefined {
  let waiting: Promise<unknown> | undefined
  for (const denylist of liveDenylists) {
    const caughtUp = askToCatchUp(denylist)
    if (caughtUp !== undefined) waiting = Promise.all([waiting, caughtUp])
  }
  return waiting
}

function askToCatchUp(denylist: LiveDenylist): Promise<unknown> | undefined {
  try {
    const answer = denylist.catchUp?.()
    return answer === undefined ? undefined : answer.catch(() => {})
  } catch (error) {
    throw failed(denylist, error)
  }
}

function reasonNow(
  denylist: LiveDenylist,
  issuer: string,
  reasonOf: (lists: DeniedLists) => DenylistReason | undefined,
): DenylistReason | undefined {
  let lists: DeniedLists | undefined
  try {
    lists = denylist.lists(issuer)
    return lists === undefined ? 'denylist_unavailable' : reasonOf(lists)
  } catch (error) {
    ignoreRejection(lists)
    throw failed(denylist, error)
  }
}

/** Always wraps: otherwise an `Unavailable` thrown by the denylist would become a 503. */
function failed(denylist: LiveDenylist, cause: unknown): DependencyError {
  const message = 'a live denylist of the policy has failed'
  return new DependencyError(dependencyOf('denylist', denylist), message, { cause })
}

function reasonIn(
  { keys, tokenIds, callers, issuedBefore }: DeniedLists,
  { keyId, tokenId, name, issuedAt }: DeniableToken,
): DenylistReason | undefined {
  if (isIn(keys, keyId)) return 'key_denied'
  if (tokenId !== undefined && isIn(tokenIds, tokenId)) return 'token_denied'
  if (isBefore(issuedAt, issuedBefore)) return 'token_issued_too_early'
  return isIn(callers, name) ? 'caller_denied' : undefined
}

function isIn(set: ReadonlySet<string>, name: string): boolean {
  const isListed: unknown = set.has(name)
  if (typeof isListed === 'boolean') return isListed
  // A promise would deny every token, and `undefined` none.
  ignoreRejection(isListed)
  throw new TypeError('has must return true or false')
}

function isBefore(issuedAt: number | undefined, limit: number | undefined): boolean {
  if (limit === undefined) return false
  // A comparison with NaN would let every token pass.
  if (!Number.isFinite(limit)) throw new TypeError('issuedBefore must be a number of seconds')
  return issuedAt === undefined || issuedAt < limit
}

function evidenceOf(reason: DenylistReason, { keyId, name }: DeniableToken): Denial['evidence'] {
  switch (reason) {
    case 'token_denied':
      return { claim: 'jti', keyId }
    case 'token_issued_too_early':
      return { claim: 'iat', keyId }
    case 'caller_denied':
      return { claim: 'sub', caller: name, keyId }
    default:
      return { keyId }
  }
}
