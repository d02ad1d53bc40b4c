import crypto, { randomBytes } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { encryptedStore } from 'express-service-auth'
import { compactDecrypt } from 'jose'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { encodeResult } from '../../../src/idempotency/buffered-response/stored-result.js'
import { createResultCipher } from '../../../src/stores/encrypted/result-cipher.js'
import { finish, found, KEYS, OPTIONS, openInner, requestFor, retry } from './encrypted-kit.js'

const PLAIN = encodeResult({ status: 201, headers: [['location', '/1']], body: Buffer.from('{}') })
const UNREADABLE = { outcome: 'unreadable' }

const partsOf = (jwe: Buffer): string[] => jwe.toString('latin1').split('.')
const headerOf = (jwe: Buffer): unknown =>
  JSON.parse(Buffer.from(partsOf(jwe)[0] ?? '', 'base64url').toString())

describe('an encrypted result', () => {
  const inner = openInner()
  afterAll(() => inner.close())
  const make = (changes: Partial<typeof OPTIONS> = {}) =>
    encryptedStore(inner.store, { ...OPTIONS, ...changes })
  const both = [{}, { readUnencrypted: true }]

  it('is a compact JWE with its key id, and no plaintext', async () => {
    const request = await finish(make(), PLAIN)
    const kept = await inner.read(request.recordId)
    const header = { alg: 'dir', enc: 'A256GCM', kid: '2026-01' }
    expect(headerOf(kept)).toEqual(header)
    expect(partsOf(kept)).toHaveLength(5)
    expect(partsOf(kept)[1]).toBe('')
    expect(kept.includes('location')).toBe(false)
    expect(await found(make(), request)).toBe(PLAIN.toString())
  })

  it('is unreadable once any bit of it is another', async () => {
    const request = await finish(make(), PLAIN)
    const stores = both.map(make)
    const kept = await inner.read(request.recordId)
    for (let index = 0; index < kept.byteLength; index += 1) {
      for (const bit of [0, 1, 2, 3, 4, 5, 6, 7]) {
        const damaged = Buffer.from(kept)
        damaged[index] = (kept[index] ?? 0) ^ (1 << bit)
        await inner.write(request.recordId, damaged)
        for (const store of stores) {
          expect(await retry(store, request), `bit ${bit} of ${index}`).toEqual(UNREADABLE)
        }
      }
    }
    await inner.write(request.recordId, kept)
    expect((await retry(make(), request)).outcome).toBe('finished')
  })

  it('opens for no other record', async () => {
    const store = make()
    const mine = await finish(store, PLAIN)
    const other = await finish(store, PLAIN)
    await inner.write(other.recordId, await inner.read(mine.recordId))
    expect(await retry(store, other)).toEqual(UNREADABLE)
    expect((await retry(store, mine)).outcome).toBe('finished')
  })

  it('is unreadable without its key, or with another key of its id', async () => {
    const request = await finish(make(), PLAIN)
    const without = { keys: { '2026-02': KEYS['2026-02'] }, current: '2026-02' }
    const another = { keys: { ...KEYS, '2026-01': randomBytes(32) } }
    for (const options of [without, another]) {
      for (const more of both) {
        expect(await retry(make({ ...options, ...more }), request)).toEqual(UNREADABLE)
      }
    }
    expect((await retry(make(), request)).outcome).toBe('finished')
  })

  it.each([
    ['nothing', ''],
    ['text', 'garbage'],
    ['the start of a JWE', 'eyJ'],
    ['four dots', '....'],
    ['the start of a plain result', '['],
  ])('is unreadable when it is %s', async (_, text) => {
    const request = await finish(make(), PLAIN)
    await inner.write(request.recordId, Buffer.from(text))
    expect(await retry(make(), request)).toEqual(UNREADABLE)
  })

  it('is unreadable in other spellings of base64url', async () => {
    const request = await finish(make(), PLAIN)
    const kept = (await inner.read(request.recordId)).toString()
    for (const spelling of [`${kept}==`, `${kept}\n`, ` ${kept}`, `${kept}.`, `${kept}.x`]) {
      await inner.write(request.recordId, Buffer.from(spelling))
      expect(await retry(make(), request), JSON.stringify(spelling)).toEqual(UNREADABLE)
    }
  })

  it('is plain only where that is allowed, and comes back as it is', async () => {
    const request = await finish(inner.store, PLAIN)
    expect(await retry(make(), request)).toEqual(UNREADABLE)
    const lenient = make({ readUnencrypted: true })
    expect(await retry(lenient, request)).toEqual({ outcome: 'finished', result: PLAIN })
    const later = await finish(lenient, PLAIN)
    expect(headerOf(await inner.read(later.recordId))).toMatchObject({ kid: '2026-01' })
  })
})

describe('the cipher', () => {
  const inner = openInner()
  afterAll(() => inner.close())
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })

  function breakCipher(step: 'createCipheriv' | 'createDecipheriv'): void {
    vi.spyOn(crypto, step).mockImplementation(() => {
      throw new Error('out of order')
    })
    syncBuiltinESMExports()
  }

  it('is at fault, and not the result, if it cannot decrypt', async () => {
    const store = encryptedStore(inner.store, OPTIONS)
    const request = await finish(store, PLAIN)
    breakCipher('createDecipheriv')
    await expect(retry(store, request)).rejects.toThrow('out of order')
  })

  it('leaves a run whose result it cannot encrypt without one', async () => {
    const store = encryptedStore(inner.store, OPTIONS)
    const request = requestFor()
    breakCipher('createCipheriv')
    await expect(finish(store, PLAIN, request)).rejects.toThrow('out of order')
    expect((await retry(store, request)).outcome).toBe('running')
  })
})

describe('the format', () => {
  const BOUND = { recordId: 'r', fingerprint: 'f' }
  const PREFIX = '1:r1:f'
  const KEY = KEYS['2026-01']
  const cipher = createResultCipher(new Map(Object.entries(KEYS)), '2026-01')
  const results = [0, 1, 2, 3, 15, 16, 17, 1000, 65_537].map((size) => randomBytes(size))

  const decrypted = (jwe: string): Promise<Buffer | undefined> =>
    compactDecrypt(jwe, KEY).then(
      ({ plaintext }) => Buffer.from(plaintext),
      () => undefined,
    )

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
    const sealed = cipher.seal(Buffer.from('2:xx[1]'), mine)
    expect(cipher.open(sealed, mine)).toEqual(Buffer.from('2:xx[1]'))
    expect(cipher.open(sealed, other)).toBeUndefined()
  })

  it('is what jose decrypts', async () => {
    for (const result of results) {
      const jwe = Buffer.from(cipher.seal(result, BOUND)).toString()
      expect(await decrypted(jwe)).toEqual(Buffer.concat([Buffer.from(PREFIX), result]))
    }
  })

  it.each([0, 4, 8, 12, 15])('is unreadable with the first %i bytes of its tag', (length) => {
    const parts = Buffer.from(cipher.seal(Buffer.from('[201]'), BOUND))
      .toString()
      .split('.')
    const tag = Buffer.from(parts.pop() ?? '', 'base64url')
    const shorter = [...parts, tag.toString('base64url', 0, length)].join('.')
    expect(cipher.open(Buffer.from(shorter), BOUND)).toBeUndefined()
    const whole = [...parts, tag.toString('base64url')].join('.')
    expect(cipher.open(Buffer.from(whole), BOUND)).toEqual(Buffer.from('[201]'))
  })
})
