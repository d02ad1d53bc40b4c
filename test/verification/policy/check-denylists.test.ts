import { describe, expect, it, vi } from 'vitest'
import { dependencyOf } from '../../../src/base/decision/dependency.js'
import type { DeniedLists, LiveDenylist } from '../../../src/verification/denylist/live-denylist.js'
import {
  checkDenylists,
  checkKeyDenylists,
  checkLiveDenylists,
} from '../../../src/verification/policy/check-denylists.js'
import { parsePolicy } from '../../../src/verification/policy/policy.js'
import { collectUnhandledErrors } from '../../support/observe/unhandled-errors.js'

const CUT_OFF = 1_800_000_000
const TOKEN = { name: 'billing', keyId: 'k', tokenId: 'id', issuedAt: CUT_OFF }
const NOTHING: DeniedLists = { callers: new Set(), keys: new Set(), tokenIds: new Set() }

/** What each list denies of `TOKEN`, the most urgent first, with its evidence. */
const WAYS = [
  ['key_denied', { ...NOTHING, keys: new Set(['k']) }, { keyId: 'k' }],
  ['token_denied', { ...NOTHING, tokenIds: new Set(['id']) }, { claim: 'jti', keyId: 'k' }],
  [
    'token_issued_too_early',
    { ...NOTHING, issuedBefore: CUT_OFF + 1 },
    { claim: 'iat', keyId: 'k' },
  ],
  [
    'caller_denied',
    { ...NOTHING, callers: new Set(['billing']) },
    { claim: 'sub', caller: 'billing', keyId: 'k' },
  ],
  ['denylist_unavailable', undefined, { keyId: 'k' }],
] as const

const live = (lists: unknown): LiveDenylist => ({
  lists: () => lists as DeniedLists | undefined,
  ready: async () => {},
  health: () => ({ state: 'fresh', entries: 0, version: 1 }),
  close: () => {},
})

const policyOf = (...lists: readonly unknown[]) =>
  parsePolicy({
    issuer: 'https://api.example.com',
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: ['billing'],
    denylist: lists.map(live),
  })

describe('what live denylists have against a token', () => {
  it.each(WAYS)('is %s, with what it is about', (reason, lists, evidence) => {
    const failure = { dependency: expect.anything(), message: 'a live denylist is unknown' }
    const denial = { ok: false, reason, evidence, ...(lists === undefined && { failure }) }
    expect(checkDenylists(TOKEN, policyOf(lists))).toEqual(denial)
    expect(checkLiveDenylists(TOKEN, policyOf(NOTHING, lists, NOTHING))).toEqual(denial)
  })

  it('is the most urgent reason, whichever list has it and whichever was known earlier', () => {
    for (const [rank, [urgent, first]] of WAYS.entries()) {
      for (const [reason, second] of WAYS.slice(rank + 1)) {
        expect(checkDenylists(TOKEN, policyOf(first, second))?.reason).toBe(urgent)
        expect(checkDenylists(TOKEN, policyOf(second, first))?.reason).toBe(urgent)
        expect(checkLiveDenylists(TOKEN, policyOf(first), reason)?.reason).toBe(urgent)
        expect(checkLiveDenylists(TOKEN, policyOf(second), urgent)?.reason).toBe(urgent)
      }
    }
  })

  it('adds to what fixed ones have', () => {
    const denied = { ...NOTHING, callers: new Set(['billing']) }
    expect(checkDenylists(TOKEN, { ...policyOf(NOTHING), denied })?.reason).toBe('caller_denied')
    const keys = { ...NOTHING, keys: new Set(['k']) }
    expect(checkDenylists(TOKEN, { ...policyOf(keys), denied })?.reason).toBe('key_denied')
    expect(checkKeyDenylists('k', { ...policyOf(NOTHING), denied: keys })?.reason).toBe(
      'key_denied',
    )
  })

  it('is asked for the issuer of the policy', () => {
    const policy = policyOf(NOTHING)
    const lists = vi.spyOn(policy.liveDenylists[0] as LiveDenylist, 'lists')
    checkDenylists(TOKEN, policy)
    checkKeyDenylists('k', policy)
    expect(lists.mock.calls).toEqual([[policy.issuer], [policy.issuer]])
  })

  it('names the first denylist that is unknown', () => {
    const policy = policyOf(NOTHING, undefined, undefined)
    const dependency = dependencyOf('denylist', policy.liveDenylists[1] as LiveDenylist)
    expect(checkDenylists(TOKEN, policy)?.failure?.dependency).toBe(dependency)
    expect(checkKeyDenylists('k', policy)?.failure?.dependency).toBe(dependency)
  })

  it('cannot be told by a promise, whose rejection is ignored', async () => {
    const unhandled = collectUnhandledErrors()
    const lists = Promise.reject(new Error('away'))
    expect(() => checkDenylists(TOKEN, policyOf(lists))).toThrow('a live denylist of the policy')
    await new Promise(setImmediate)
    expect(unhandled).toEqual([])
  })

  it('is nothing where they deny something else', () => {
    const others = new Set(['other'])
    const lists = { callers: others, keys: others, tokenIds: others, issuedBefore: CUT_OFF }
    expect(checkDenylists(TOKEN, policyOf(lists))).toBeUndefined()
    const { tokenId: _, ...withoutId } = TOKEN
    const ofText = { has: (id: string) => id.length > 99 }
    for (const tokenIds of [others, ofText]) {
      expect(checkDenylists(withoutId, policyOf({ ...lists, tokenIds }))).toBeUndefined()
    }
  })

  it('includes a token without iat as soon as there is a cut-off', () => {
    const { issuedAt: _, ...withoutIat } = TOKEN
    expect(checkDenylists(withoutIat, policyOf({ ...NOTHING, issuedBefore: 0 }))?.reason).toBe(
      'token_issued_too_early',
    )
    expect(checkDenylists(withoutIat, policyOf(NOTHING))).toBeUndefined()
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['lists for sets', { ...NOTHING, keys: ['k'] }],
    ['no callers', { ...NOTHING, callers: undefined }],
    ['a promise for each key', { ...NOTHING, keys: { has: () => Promise.reject(new Error()) } }],
    ['no answer for a caller', { ...NOTHING, callers: { has: () => undefined } }],
    ['NaN as the cut-off', { ...NOTHING, issuedBefore: Number.NaN }],
  ])('cannot be told by lists of another shape: %s', (_what, lists) => {
    const fault = expect.objectContaining({ code: 'internal', cause: expect.any(TypeError) })
    expect(() => checkDenylists(TOKEN, policyOf(lists))).toThrow(fault)
  })
})

describe('what live denylists have against a key', () => {
  it('is that it is denied, and no evidence', () => {
    const denied = { ok: false, reason: 'key_denied', evidence: {} }
    const [[, lists], , , , [, unknown]] = WAYS
    for (const policy of [policyOf(lists), policyOf(NOTHING, lists), policyOf(unknown, lists)]) {
      expect(checkKeyDenylists('k', policy)).toEqual(denied)
    }
    expect(checkKeyDenylists('k', policyOf(unknown))?.reason).toBe('denylist_unavailable')
    expect(checkKeyDenylists('other', policyOf(lists))).toBeUndefined()
  })
})
