import crypto, { randomBytes } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { encryptedStore, memoryStore } from 'express-service-auth'
import { compactDecrypt } from 'jose'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { encodeResult } from '../../../src/idempotency/buffered-response/stored-result.js'
import { createResultCipher } from '../../../src/stores/encrypted/result-cipher.js'
import { finish, found, KEYS, OPTIONS, requestFor, retry } from './encrypted-kit.js'

const PLAIN = encodeResult({ status: 201, headers: [['location', '/1']], body: Buffer.from('{}') })
const BOUND = { recordId: 'r', fingerprint: 'f' }
const PREFIX = '1:r1:f'

const cipherOf = (keys: Readonly<Record<string, Uint8Array>>, current = '2026-01') =>
  createResultCipher(new Map(Object.entries(keys)), current)
const cipher = cipherOf(KEYS)

const sealed = (result: Uint8Array = PLAIN): Buffer => Buffer.from(cipher.seal(result, BOUND))
const opened = (stored: Uint8Array | string) => cipher.open(Buffer.from(stored), BOUND)

describe('an encrypted result', () => {
  it('is a compact JWE with its key id, and what jose decrypts', async () => {
    const sizes = [0, 1, 2, 3, 15, 16, 17, 1000, 65_537]
    for (const result of sizes.map((size) => randomBytes(size))) {
      const { plaintext, protectedHeader } = await compactDecrypt(
        sealed(result).toString(),
        KEYS['2026-01'],
      )
      expect(protectedHeader).toEqual({ alg: 'dir', enc: 'A256GCM', kid: '2026-01' })
      expect(Buffer.from(plaintext)).toEqual(Buffer.concat([Buffer.from(PREFIX), result]))
      expect(opened(sealed(result))).toEqual(result)
    }
  })

  it('is unreadable once any bit of it is another', () => {
    const kept = sealed()
    for (let index = 0; index < kept.byteLength; index += 1) {
      for (const bit of [0, 1, 2, 3, 4, 5, 6, 7]) {
        const damaged = Buffer.from(kept)
        damaged[index] = (kept[index] ?? 0) ^ (1 << bit)
        expect(opened(damaged), `bit ${bit} of ${index}`).toBeUndefined()
      }
    }
    expect(opened(kept)).toEqual(PLAIN)
  })

  it('is unreadable without its key, or with another key of its id', () => {
    const kept = sealed()
    const without = cipherOf({ '2026-02': KEYS['2026-02'] }, '2026-02')
    expect(without.open(kept, BOUND)).toBeUndefined()
    expect(cipherOf({ ...KEYS, '2026-01': randomBytes(32) }).open(kept, BOUND)).toBeUndefined()
    expect(cipherOf(KEYS, '2026-02').open(kept, BOUND)).toEqual(PLAIN)
  })

  it.each(['', 'garbage', 'eyJ', '....', '['])('is unreadable when it is %j', (text) => {
    expect(opened(text)).toBeUndefined()
  })

  it('is unreadable in other spellings of base64url', () => {
    const kept = sealed().toString()
    for (const spelling of [`${kept}==`, `${kept}\n`, ` ${kept}`, `${kept}.`, `${kept}.x`]) {
      expect(opened(spelling), JSON.stringify(spelling)).toBeUndefined()
    }
  })

  it.each([
    [BOUND, { recordId: '', fingerprint: 'rf' }],
    [
      { recordId: 'a', fingerprint: 'bc' },
      { recordId: 'ab', fingerprint: 'c' },
    ],
    [
      { recordId: '1:a', fingerprint: 'b' },
      { recordId: '1', fingerprint: ':a1:b' },
    ],
  ])('tells %j from %j', (mine, other) => {
    const kept = cipher.seal(Buffer.from('2:xx[1]'), mine)
    expect(cipher.open(kept, mine)).toEqual(Buffer.from('2:xx[1]'))
    expect(cipher.open(kept, other)).toBeUndefined()
  })

  it.each([0, 4, 8, 12, 15])('is unreadable with the first %i bytes of its tag', (length) => {
    const parts = sealed().toString().split('.')
    const tag = Buffer.from(parts.pop() ?? '', 'base64url')
    const shorter = [...parts, tag.toString('base64url', 0, length)].join('.')
    expect(opened(shorter)).toBeUndefined()
    expect(opened([...parts, tag.toString('base64url')].join('.'))).toEqual(PLAIN)
  })
})

describe('a store with a cipher', () => {
  const inner = memoryStore()
  afterAll(() => inner.close())
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })
  const store = encryptedStore(inner, OPTIONS)

  it('takes a plain result only where that is allowed, as it is', async () => {
    const request = await finish(inner, PLAIN)
    expect(await retry(store, request)).toEqual({ outcome: 'unreadable' })
    const lenient = encryptedStore(inner, { ...OPTIONS, readUnencrypted: true })
    expect(await retry(lenient, request)).toEqual({ outcome: 'finished', result: PLAIN })
    expect(await found(inner, await finish(lenient, PLAIN))).toMatch(/^eyJ/)
    const other = await finish(store, PLAIN)
    const wrong = { ...OPTIONS, keys: { '2026-01': randomBytes(32) }, readUnencrypted: true }
    expect(await retry(encryptedStore(inner, wrong), other)).toEqual({ outcome: 'unreadable' })
  })

  function breakCipher(step: 'createCipheriv' | 'createDecipheriv'): void {
    vi.spyOn(crypto, step).mockImplementation(() => {
      throw new Error('out of order')
    })
    syncBuiltinESMExports()
  }

  it('is at fault, and not the result, if it cannot decrypt', async () => {
    const request = await finish(store, PLAIN)
    breakCipher('createDecipheriv')
    await expect(retry(store, request)).rejects.toThrow('out of order')
  })

  it('leaves a run whose result it cannot encrypt without one', async () => {
    const request = requestFor()
    breakCipher('createCipheriv')
    await expect(finish(store, PLAIN, request)).rejects.toThrow('out of order')
    expect((await retry(store, request)).outcome).toBe('running')
  })
})
