import { calculateJwkThumbprint } from 'jose'
import { expect, it, vi } from 'vitest'
import { createProof, createProofKey } from '../../../src/testing/issuer/bound-token.js'
import { compactToken, es256 } from '../../../src/testing/issuer/compact-token.js'
import {
  checkProof,
  type ProvedRequest,
} from '../../../src/verification/confirmation/check-proof.js'
import { parseBaseUrl } from '../../../src/verification/confirmation/http-uri.js'

const now = 1_800_000_000
const [base] = ['https://orders.test'].map(parseBaseUrl)
if (base === undefined) throw new Error('a base URL')
const request: ProvedRequest = { token: 't', method: 'GET', url: '/', baseUrls: [base], now }
const key = createProofKey()
const judge = (proof: string) =>
  checkProof(proof, { kind: 'dpop', thumbprint: key.thumbprint }, request)
const newProof = () =>
  createProof(key, { token: 't', method: 'GET', url: 'https://orders.test/', now })

it('returns the proof that the key has signed, until it is too old', async () => {
  const acceptableUntil = now + 60
  expect(await judge(newProof())).toMatchObject({ thumbprint: key.thumbprint, acceptableUntil })
})

it('refuses a point that is not on the curve, although the token is bound to it', async () => {
  const jwk = { ...key.jwk, y: key.jwk.x }
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk }
  const proof = compactToken(header, {}, es256(key.privateKey))
  const thumbprint = await calculateJwkThumbprint(jwk)
  expect(await checkProof(proof, { kind: 'dpop', thumbprint }, request)).toBe('jwk')
})

it('rejects with the cause, and blames no member, if the runtime cannot verify or import', async () => {
  const cause = new Error('no engine')
  for (const name of ['verify', 'importKey', 'digest'] as const) {
    const failing = vi.spyOn(crypto.subtle, name).mockRejectedValue(cause)
    await expect(judge(newProof())).rejects.toBe(cause)
    failing.mockRestore()
  }
})

it('refuses a signature of another length or form', async () => {
  const [header, payload, signature = ''] = newProof().split('.')
  const raw = Buffer.from(signature, 'base64url')
  const [r, s] = [raw.subarray(0, 32), raw.subarray(32)]
  const zeros = Buffer.alloc(32)
  const wrong = [
    ...[raw.subarray(1), raw.subarray(0, 63), Buffer.concat([raw, zeros])],
    ...[Buffer.concat([zeros, r, s]), Buffer.of(0), Buffer.concat([s, r])],
    ...[Buffer.concat([zeros, zeros]), Buffer.concat([r, zeros]), Buffer.concat([zeros, s])],
    Buffer.concat([Buffer.of(0x30, 0x44, 2, 32), r, Buffer.of(2, 32), s]),
    Buffer.alloc(64, 0xff),
  ]
  for (const bytes of wrong) {
    expect(await judge(`${header}.${payload}.${bytes.toString('base64url')}`)).toBe('signature')
  }
})
