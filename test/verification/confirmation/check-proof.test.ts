import { expect, it } from 'vitest'
import { createProof, createProofKey } from '../../../src/testing/issuer/bound-token.js'
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

/** Numbers of a signature that begin with a zero byte are one in 256. */
const SIGNATURES = 3000

it('verifies signatures with numbers of every length', () => {
  const lengths = new Set<number>()
  for (let count = 0; count < SIGNATURES; count += 1) {
    const proof = newProof()
    const signature = Buffer.from(proof.split('.')[2] ?? '', 'base64url')
    for (const number of [signature.subarray(0, 32), signature.subarray(32)]) {
      lengths.add(number.findIndex((byte) => byte !== 0) * 2 + Number((number[0] ?? 0) >= 0x80))
    }
    expect(judge(proof)).toMatchObject({ thumbprint: key.thumbprint })
  }
  // 32 bytes, 32 with the first bit set, and 31.
  expect([...lengths]).toEqual(expect.arrayContaining([0, 1, 2]))
})

it('refuses a signature of another length or form', () => {
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
    expect(judge(`${header}.${payload}.${bytes.toString('base64url')}`)).toBe('signature')
  }
})
