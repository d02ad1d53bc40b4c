import { randomBytes } from 'node:crypto'
import {
  type EncryptedStoreOptions,
  encryptedStore,
  type IdempotencyStore,
  memoryStore,
  type ReservationRequest,
  type SingleUseStore,
  type Store,
} from 'express-service-auth'
import {
  idempotencyStoreCases,
  recordKeeperCases,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { testCases } from '../../support/stores/store-cases.js'
import { begin, finish, found, KEYS, OPTIONS, openRedisStore, requestFor } from './encrypted-kit.js'

const store = encryptedStore(await openRedisStore(), OPTIONS)

describe('encryptedStore on Redis', () => {
  testCases(idempotencyStoreCases(() => store))
  testCases(singleUseStoreCases(() => store))
  testCases(recordKeeperCases(() => store))

  it('is as fit as the store that it is around', async () => {
    await expect(store.check()).resolves.toEqual([])
    expect(store.health().state).toBe('up')
  })
})

/** A user's own store: a class whose functions need their `this`. */
class OwnStore implements IdempotencyStore {
  readonly #inner = memoryStore()
  readonly owners: string[] = []
  reserve(request: ReservationRequest) {
    this.owners.push(request.owner)
    return this.#inner.reserve(request)
  }
  renew(run: Parameters<IdempotencyStore['renew']>[0]) {
    this.owners.push(run.owner)
    return this.#inner.renew(run)
  }
  settle(...[run, ending]: Parameters<IdempotencyStore['settle']>) {
    this.owners.push(run.owner)
    return this.#inner.settle(run, ending)
  }
  all(): string {
    return 'something that nobody knows'
  }
}

class OwnFullStore extends OwnStore {
  readonly #used = new Set<string>()
  async consume(id: string, ttlMs: number): Promise<boolean> {
    if (ttlMs <= 0 || this.#used.has(id)) return false
    this.#used.add(id)
    return true
  }
  async check(): Promise<void> {
    if (this.#used.size > 0) throw new Error('full')
  }
  health(): { state: 'up'; used: number } {
    return { state: 'up', used: this.#used.size }
  }
  close(): void {
    this.#used.clear()
  }
}

describe('encryptedStore around a store of a user', () => {
  it('calls functions that need their this', async () => {
    const store = encryptedStore(new OwnStore(), OPTIONS)
    const run = await begin(store, requestFor())
    expect(await store.renew(run)).toBe(true)
    expect(await store.settle(run, { type: 'finished', result: Buffer.from('[1]') })).toBe(true)
    expect(await found(store, { ...run, rerunAbandoned: false })).toBe('[1]')
  })

  it('has what the store has, and nothing else of it', () => {
    const bare = encryptedStore(new OwnStore(), OPTIONS)
    expect(Object.keys(bare).sort()).toEqual(['renew', 'reserve', 'settle'])
    const full = encryptedStore(new OwnFullStore(), OPTIONS)
    const names = ['check', 'close', 'consume', 'health', 'renew', 'reserve', 'settle']
    expect(Object.keys(full).sort()).toEqual(names)
  })

  it('hands through what it does not change, with its this', async () => {
    const store = encryptedStore(new OwnFullStore(), OPTIONS)
    expect(await store.consume('id', 1000)).toBe(true)
    expect(await store.consume('id', 1000)).toBe(false)
    expect(store.health()).toEqual({ state: 'up', used: 1 })
    await expect(store.check()).rejects.toThrow('full')
    store.close()
    expect(store.health().used).toBe(0)
  })

  it('is of its type', () => {
    const store: Store = encryptedStore(memoryStore(), OPTIONS)
    onTestFinished(() => store.close())
    const consuming: SingleUseStore = encryptedStore(new OwnFullStore(), OPTIONS)
    const bare = encryptedStore(new OwnStore(), OPTIONS)
    // @ts-expect-error What the store lacks is not there.
    expect(bare.consume).toBeUndefined()
    // @ts-expect-error Nobody can look into it.
    expect(bare.inspect).toBeUndefined()
    // @ts-expect-error Nothing is known of it.
    expect(bare.all).toBeUndefined()
    expect(consuming.consume).toBeTypeOf('function')
    // @ts-expect-error A store of used tokens alone keeps no results.
    expect(() => encryptedStore({ consume: async () => true }, OPTIONS)).toThrow(TypeError)
  })

  it('gives each run one owner that names the key', async () => {
    const own = new OwnStore()
    const store = encryptedStore(own, OPTIONS)
    const run = await begin(store, requestFor({ owner: 'owner' }))
    await store.renew(run)
    await store.settle(run, { type: 'not_stored' })
    expect(new Set(own.owners)).toEqual(new Set(['jwe:2026-01:owner']))
  })

  it('encrypts nothing but a result, as it is when it is settled', async () => {
    const inner = memoryStore()
    const settled: unknown[] = []
    const watched: IdempotencyStore = {
      ...inner,
      settle(run, ending) {
        settled.push(ending)
        return inner.settle(run, ending)
      },
    }
    const store = encryptedStore(watched, OPTIONS)
    onTestFinished(() => inner.close())
    for (const type of ['not_stored', 'abandoned', 'released'] as const) {
      await store.settle(await begin(store, requestFor()), { type })
      expect(settled.pop()).toEqual({ type })
    }
    const result = Buffer.from('[first]')
    const run = await begin(store, requestFor())
    const settling = store.settle(run, { type: 'finished', result })
    result.fill('x')
    await settling
    expect(await found(store, { ...run, rerunAbandoned: true })).toBe('[first]')
  })
})

describe('the options of encryptedStore', () => {
  const inner = memoryStore()
  afterAll(() => inner.close())
  const key = randomBytes(32)
  const faultOf = (options: unknown): string => {
    try {
      encryptedStore(inner, options as EncryptedStoreOptions)
      return ''
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError)
      expect((error as Error).cause).toBeUndefined()
      return (error as Error).message
    }
  }

  it.each([
    ['keys must be an object', { current: 'a' }],
    ['keys must be an object', { keys: [key], current: '0' }],
    ['keys must have 1 to 16 ids', { keys: {}, current: 'a' }],
    [
      'keys must have 1 to 16 ids',
      { keys: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, key])), current: '1' },
    ],
    ['keys.a must be a Uint8Array of 32 bytes', { keys: { a: randomBytes(31) }, current: 'a' }],
    ['keys.b must be a Uint8Array of 32 bytes', { keys: { a: key, b: 'text' }, current: 'a' }],
    ['keys.a must be a Uint8Array of 32 bytes', { keys: { a: [...key] }, current: 'a' }],
    ['keys[0] must have an id of 1 to 64 of A-Za-z0-9._-', { keys: { 'a b': key }, current: 'a' }],
    [
      'keys[1] must have an id of 1 to 64 of A-Za-z0-9._-',
      { keys: { a: key, ['b'.repeat(65)]: key }, current: 'a' },
    ],
    ['current must be one of the ids in keys', { keys: { a: key }, current: 'b' }],
    ['current must be one of the ids in keys', { keys: { a: key }, current: 'constructor' }],
    ['current must be a string', { keys: { a: key } }],
    [
      'readUnencrypted must be true or false',
      { keys: { a: key }, current: 'a', readUnencrypted: 1 },
    ],
    ['key is not an option', { keys: { a: key }, current: 'a', key }],
    ['the options must be an object', undefined],
  ])('are refused: %s', (fault, options) => {
    const message = faultOf(options)
    expect(message).toMatch(/^encryptedStore options: /)
    expect(message).toContain(fault)
  })

  it('never show a key, not even one that was taken for an id', () => {
    const texts = (['hex', 'base64', 'base64url'] as const).map((form) => key.toString(form))
    for (const text of texts) {
      for (const options of [
        { keys: { a: text }, current: 'a' },
        { keys: { [text]: 'a' }, current: text },
        { keys: { a: key }, current: text },
        { keys: { a: key.subarray(1) }, current: 'b' },
        { keys: text, current: 'a' },
      ]) {
        const message = faultOf(options)
        expect(message).not.toBe('')
        for (const secret of texts) expect(message).not.toContain(secret.slice(2, 18))
      }
    }
  })

  it('take ids of 1 to 64 and 16 keys, of any kind of Uint8Array', () => {
    const ids = ['a', 'A-Za-z0-9._-', 'x'.repeat(64), '__proto__x']
    for (const id of ids) expect(faultOf({ keys: { [id]: key }, current: id })).toBe('')
    const keys = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`k${n}`, key]))
    expect(faultOf({ keys, current: 'k15' })).toBe('')
    const ownMemory = new Uint8Array(new SharedArrayBuffer(40), 4, 32)
    expect(faultOf({ keys: { a: ownMemory }, current: 'a' })).toBe('')
  })

  it('may be changed after the store is made', async () => {
    const keys: Record<string, Uint8Array> = { a: Buffer.from(key) }
    const options = { keys, current: 'a' }
    const store = encryptedStore(inner, options)
    const request = await finish(store, Buffer.from('[1]'))
    keys['a']?.fill(0)
    delete keys['a']
    options.current = 'b'
    expect(await found(store, request)).toBe('[1]')
    const later = await finish(store, Buffer.from('[2]'))
    const other = encryptedStore(inner, { keys: { a: key }, current: 'a' })
    expect(await found(other, later)).toBe('[2]')
  })

  it('are of no use without a store of idempotency keys', () => {
    for (const store of [undefined, null, {}, { reserve() {}, renew() {} }]) {
      const make = () => encryptedStore(store as never, { keys: KEYS, current: '2026-01' })
      expect(make).toThrow(TypeError)
      expect(make).toThrow('store must be a store with reserve, renew, settle')
    }
  })
})
