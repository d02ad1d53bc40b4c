import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import fc from 'fast-check'
import { CompactSign } from 'jose'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { Unavailable } from '../../../src/base/decision/service-auth-error.js'
import { createTokenForge } from '../../../src/testing/hostile/forge.js'
import {
  type FoundKey,
  type KeySource,
  keySourceOf,
  NOT_LOOKED_UP,
  type RsaJwk,
  type VerificationKey,
} from '../../../src/verification/key-set/key-set.js'
import {
  parseToken,
  verifyJws,
  verifySignature,
  withPayload,
} from '../../../src/verification/token/signed-token.js'
import { mutantsOf } from '../../fuzz/mutations.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'

const issuer = await createTestIssuer({ http: false })
afterAll(() => issuer.close())
const forge = createTokenForge(issuer)
const { kid } = issuer
const source = keySourceOf(issuer.keySet) as KeySource
const key = (await source.find(kid)) as VerificationKey
const publicKey = createPublicKey({ key: { ...key.jwk }, format: 'jwk' })

describe('verification', () => {
  it('gives the payload and the key of a token that the key has signed', async () => {
    const decision = await verifySignature({ token: forge.good, kid }, source)
    expect(decision).toEqual({
      ok: true,
      value: { key, payload: { members: forge.claims, text: JSON.stringify(forge.claims) } },
    })
  })

  it('refuses what the key has not signed, and names the key', async () => {
    const forged = `${forge.good.slice(0, -8)}AAAAAAAA`
    expect(await verifySignature({ token: forged, kid }, source)).toEqual({
      ok: false,
      reason: 'signature_invalid',
      evidence: { keyId: kid },
    })
  })

  it('refuses a payload that is no object only once it has verified', async () => {
    const token = forge.token({ payload: '[]' })
    expect(await verifySignature({ token, kid }, source)).toEqual({
      ok: false,
      reason: 'token_malformed',
      evidence: { keyId: kid },
    })
    const forged = `${token.slice(0, -8)}AAAAAAAA`
    expect(await verifySignature({ token: forged, kid }, source)).toMatchObject({
      reason: 'signature_invalid',
    })
  })

  it('refuses an unknown key without naming it', async () => {
    expect(await verifySignature({ token: forge.good, kid: 'unknown' }, source)).toEqual({
      ok: false,
      reason: 'key_unknown',
      evidence: {},
    })
    const without: KeySource = { current: () => undefined, find: () => undefined }
    expect(verifySignature({ token: forge.good, kid }, without)).toMatchObject({
      reason: 'key_unknown',
    })
  })

  it('says that a key was not looked up, whether the source knows at once or not', async () => {
    const found = Promise.resolve<FoundKey>(NOT_LOOKED_UP)
    const finds: KeySource['find'][] = [() => NOT_LOOKED_UP, () => found]
    for (const find of finds) {
      const keySource: KeySource = { current: () => undefined, find }
      expect(await verifySignature({ token: forge.good, kid }, keySource)).toMatchObject({
        reason: 'key_not_looked_up',
      })
    }
  })

  it('takes no other algorithm than the one that it is asked for', async () => {
    const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const jwk = Object.freeze(pair.publicKey.export({ format: 'jwk' }) as RsaJwk)
    const sign = (alg: string): Promise<string> =>
      new CompactSign(Buffer.from('{}')).setProtectedHeader({ alg }).sign(pair.privateKey)
    await expect(verifyJws(await sign('RS256'), jwk, 'RS256')).resolves.toHaveLength(2)
    await expect(verifyJws(await sign('RS512'), jwk, 'RS256')).rejects.toThrow('not allowed')
  })

  it('refuses a key that leaves the set, or changes, while it verifies', async () => {
    const other = { ...key, jwk: { ...key.jwk, e: 'Aw' } }
    for (const later of [undefined, other]) {
      let looks = 0
      const look = (): VerificationKey | undefined => (++looks === 1 ? key : later)
      const keySource: KeySource = { current: look, find: async () => look() }
      expect(await verifySignature({ token: forge.good, kid }, keySource)).toMatchObject({
        reason: 'key_unknown',
      })
    }
  })

  it('accepts a key that it has to look up again, because the set was replaced meanwhile', async () => {
    const keySource: KeySource = { current: () => undefined, find: async () => key }
    expect(await verifySignature({ token: forge.good, kid }, keySource)).toMatchObject({ ok: true })
  })

  it('rejects with the cause, and refuses nobody, if the runtime cannot verify', async () => {
    const cause = new Error('no engine')
    const verifying = vi.spyOn(crypto.subtle, 'verify').mockRejectedValue(cause)
    await expect(verifySignature({ token: forge.good, kid }, source)).rejects.toBe(cause)
    verifying.mockRestore()
    expect(await verifySignature({ token: forge.good, kid }, source)).toMatchObject({ ok: true })
  })

  it('rejects, and refuses nobody, if the key cannot be imported', async () => {
    const other = { ...key, jwk: Object.freeze({ ...key.jwk, n: '?' }) }
    const keySource: KeySource = { current: () => other, find: async () => other }
    await expect(verifySignature({ token: forge.good, kid }, keySource)).rejects.toThrow()
  })

  it('cannot decide where the source cannot', async () => {
    const unavailable = new Unavailable('key_set', 'down')
    const keySource: KeySource = {
      current: () => undefined,
      find: () => Promise.reject(unavailable),
    }
    await expect(verifySignature({ token: forge.good, kid }, keySource)).rejects.toBe(unavailable)
  })

  it('takes the payload that was read before', async () => {
    const parsed = parseToken(forge.good)
    if (!parsed.ok) throw new Error(parsed.reason)
    const read = withPayload(parsed.value)
    const payload = { members: forge.claims, text: JSON.stringify(forge.claims) }
    expect(read).toEqual({ ok: true, value: { ...parsed.value, payload } })
    if (!read.ok) throw new Error(read.reason)
    const verified = await verifySignature(read.value, source)
    expect(verified.ok && verified.value.payload).toBe(read.value.payload)
    const malformed = { token: forge.token({ payload: '[]' }), kid, typ: undefined }
    expect(withPayload(malformed)).toEqual({ ok: false, reason: 'token_malformed', evidence: {} })
  })

  // `MUTANTS=100000` takes about 15 seconds.
  it('agrees with node:crypto on mutated tokens', async () => {
    const numRuns = Number(process.env['MUTANTS'] ?? 2000)
    const corpus = [forge.good, forge.token({ payload: '[]' }), forge.token({ payload: 'é' })]
    const verdicts = { verified: 0, refused: 0 }
    const tokens = fc.oneof(fc.constantFrom(...corpus), mutantsOf(corpus))
    for (const token of fc.sample(tokens, { numRuns, seed: 1 })) {
      const parsed = parseToken(token)
      if (!parsed.ok) continue
      const decision = await verifySignature({ token, kid }, source)
      const end = token.lastIndexOf('.')
      const signed = Buffer.from(token.slice(0, end))
      const signature = Buffer.from(token.slice(end + 1), 'base64url')
      const isVerified = decision.ok || decision.reason === 'token_malformed'
      expect(isVerified, token).toBe(verify('sha256', signed, publicKey, signature))
      if (decision.ok) {
        const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url')
        expect(decision.value.payload.text).toBe(payload.toString())
      }
      verdicts[isVerified ? 'verified' : 'refused'] += 1
    }
    expect(Math.min(verdicts.verified, verdicts.refused)).toBeGreaterThan(numRuns / 100)
  })
})
