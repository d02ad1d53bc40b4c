import { describe, expect, it, onTestFinished } from 'vitest'
import type { TestIssuer } from '../../src/testing/issuer/issuer.js'
import { type Admit, createAdmit, createVerifier } from '../../src/verification/admit.js'
import type { FoundKey, KeySource } from '../../src/verification/key-set/key-set.js'
import { keySourceOf } from '../../src/verification/key-set/key-set.js'
import { parsePolicy } from '../../src/verification/policy/policy.js'
import type { ServiceAuthPolicy } from '../../src/verification/policy/policy-options.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'

async function setUp(policy: Partial<ServiceAuthPolicy> = {}) {
  const issuer = await createTestIssuer({
    http: false,
    ...(policy.clock && { clock: policy.clock }),
  })
  onTestFinished(() => issuer.close())
  const source = keySourceOf(issuer.keySet) as KeySource
  let finds = 0
  let hidden = false
  const counted: KeySource = {
    current: (kid) => (hidden ? undefined : source.current(kid)),
    async find(kid): Promise<FoundKey> {
      finds += 1
      return hidden ? undefined : source.find(kid)
    },
  }
  await issuer.keySet.ready()
  const verifier = createVerifier(parsePolicy(issuer.policy(policy)), counted)
  return {
    issuer,
    admit: createAdmit(verifier),
    verifier,
    keySource: counted,
    finds: () => finds,
    hide: () => {
      hidden = true
    },
  }
}

const noSender = (): never => {
  throw new Error('an unbound token')
}

const ask = (admit: Admit, token: string) =>
  admit({ rawHeaders: ['Authorization', `Bearer ${token}`], headers: {} }, noSender)
const tokenOf = (issuer: TestIssuer): string => issuer.token()

describe('admitting a request', () => {
  it('answers for a remembered token at once, and with the same identity', async () => {
    const { issuer, admit } = await setUp()
    const token = tokenOf(issuer)
    const first = ask(admit, token)
    expect(first).toBeInstanceOf(Promise)
    const again = ask(admit, token)
    const decision = await first
    expect(await again).toBe(decision)
    expect(ask(admit, token)).toBe(decision)
  })

  it('forgets a token whose key has gone', async () => {
    const { issuer, admit, hide } = await setUp()
    const token = tokenOf(issuer)
    expect(await ask(admit, token)).toMatchObject({ ok: true })
    hide()
    expect(await ask(admit, token)).toMatchObject({ reason: 'key_unknown' })
  })

  it('does not answer from memory at or after exp, nor before nbf', async () => {
    let now = 1_800_000_000_000
    const { issuer, admit } = await setUp({ clock: () => now })
    const token = issuer.token({ exp: 1_800_000_010, nbf: 1_800_000_000 })
    await ask(admit, token)
    now += 9_999
    expect(ask(admit, token)).not.toBeInstanceOf(Promise)
    now += 1
    expect(ask(admit, token)).toBeInstanceOf(Promise)
    expect(await ask(admit, token)).toMatchObject({ ok: true })
    now += 5_000
    expect(await ask(admit, token)).toMatchObject({ reason: 'token_expired' })
    now -= 20_000
    expect(await ask(admit, token)).toMatchObject({ ok: true })
    now -= 1
    expect(await ask(admit, token)).toMatchObject({ reason: 'token_not_yet_valid' })
  })

  it('asks the key set nothing for a form or a key id that it refuses', async () => {
    const { issuer, admit, finds } = await setUp({ denylist: { keys: ['denied'] } })
    const kids = ['denied', issuer.staticKid, 's-unknown', '', 'k'.repeat(257)]
    for (const kid of kids)
      expect(await ask(admit, issuer.token({}, { kid }))).toMatchObject({ ok: false })
    expect(await ask(admit, 'x')).toMatchObject({ reason: 'token_malformed' })
    const none = admit({ rawHeaders: [], headers: {} }, noSender)
    expect(none).toMatchObject({ reason: 'credentials_missing' })
    expect(finds()).toBe(0)
  })

  it('tells no key id that the set lacks: it could be any text', async () => {
    const { issuer, admit } = await setUp({ denylist: { keys: ['chosen'] } })
    const told = async (kid: string) => ask(admit, issuer.token({}, { kid }))
    expect(await told('chosen')).toEqual({ ok: false, reason: 'key_denied', evidence: {} })
    const refused = { ok: false, reason: 'static_key_refused' }
    expect(await told('s-chosen')).toEqual({ ...refused, evidence: {} })
    const { staticKid: keyId } = issuer
    expect(await told(keyId)).toEqual({ ...refused, evidence: { keyId } })
  })

  it('asks the denylists once, after the verification that requests have shared', async () => {
    const list = new ManualDenylist()
    const { issuer, admit } = await setUp({ denylist: list })
    const token = issuer.token({ jti: 'bad' })
    const waiting = Array.from({ length: 5 }, () => ask(admit, token))
    expect(list.asked).toEqual([])
    list.deny('tokenIds', 'bad')
    for (const decision of await Promise.all(waiting)) {
      expect(decision).toMatchObject({ reason: 'token_denied' })
    }
    expect(list.asked).toEqual([issuer.url])
    list.allow('tokenIds', 'bad')
    for (const asked of [2, 3]) {
      expect(await ask(admit, token)).toMatchObject({ ok: true })
      expect(list.asked).toHaveLength(asked)
    }
  })

  it('answers at once for a remembered token, denied or not', async () => {
    const list = new ManualDenylist()
    const { issuer, admit, finds } = await setUp({ denylist: list })
    const token = issuer.token({ jti: 'bad' })
    const first = await ask(admit, token)
    expect(ask(admit, token)).toBe(first)
    const once = finds()
    list.deny('tokenIds', 'bad')
    expect(ask(admit, token)).toMatchObject({ ok: false, reason: 'token_denied' })
    list.isKnown = false
    expect(ask(admit, token)).toMatchObject({ ok: false, reason: 'denylist_unavailable' })
    list.allow('tokenIds', 'bad')
    list.isKnown = true
    expect(ask(admit, token)).toBe(first)
    expect(finds()).toBe(once)
  })
})

describe('the cache of accepted tokens', () => {
  /** Whether each token is remembered, asked in this order. */
  const remembered = (admit: Admit, tokens: readonly string[]): boolean[] =>
    tokens.map((token) => !(ask(admit, token) instanceof Promise))

  it('counts its entries, and shares one decision among equal tokens that arrive together', async () => {
    const { issuer, admit, verifier } = await setUp()
    const [token, refused] = [tokenOf(issuer), issuer.token({ sub: 'nobody' })]
    const [one, other] = [ask(admit, token), ask(admit, token)]
    expect(await one).toBe(await other)
    expect(await ask(admit, refused)).toMatchObject({ reason: 'caller_not_approved' })
    expect(remembered(admit, [token, refused])).toEqual([true, false])
    expect(verifier.tokenCache()).toEqual({ entries: 1, max: 10_000, hits: 1, misses: 4 })
  })

  it('decides again after a decision that failed', async () => {
    const { issuer, keySource } = await setUp()
    let isDown = true
    const find = (kid: string) => (isDown ? Promise.reject(new Error('down')) : keySource.find(kid))
    const source: KeySource = { ...keySource, find }
    const admit = createAdmit(createVerifier(parsePolicy(issuer.policy()), source))
    const token = tokenOf(issuer)
    await expect(ask(admit, token)).rejects.toThrow('down')
    isDown = false
    expect(await ask(admit, token)).toMatchObject({ ok: true })
  })

  it('makes room by the token that was longest out of use', async () => {
    const { issuer, admit } = await setUp({ tokenCache: { max: 2 } })
    const [a, b, c] = ['a', 'b', 'c'].map((jti) => issuer.token({ jti })) as [
      string,
      string,
      string,
    ]
    for (const token of [a, b, a, c]) await ask(admit, token)
    expect(remembered(admit, [a, c, b])).toEqual([true, true, false])
  })

  it.each([
    [1, [false, false, true]],
    [16, [false, true, true]],
  ])('of %d entries holds as many KiB of tokens, and one of 8 KiB', async (max, expected) => {
    const { issuer, admit } = await setUp({ tokenCache: { max } })
    const pad = 'x'.repeat(5400)
    const tokens = ['a', 'b', 'c'].map((jti) => issuer.token({ jti, pad }))
    for (const token of tokens) expect(await ask(admit, token)).toMatchObject({ ok: true })
    expect(remembered(admit, tokens)).toEqual(expected)
  })

  it('is none with tokenCache: false', async () => {
    const { issuer, admit, verifier } = await setUp({ tokenCache: false })
    const token = tokenOf(issuer)
    await ask(admit, token)
    expect(remembered(admit, [token])).toEqual([false])
    expect(verifier.tokenCache()).toEqual({ entries: 0, max: 0, hits: 0, misses: 2 })
  })
})
