import { randomUUID } from 'node:crypto'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { begin, openIoredisStore, openStore, requestFor, retryOf, sharedRedis } from '../kit.js'

const server = await sharedRedis()
const redis = new Redis(server.url)
const store = redisStore(redis, { timeoutMs: 5000 })
afterAll(() => {
  store.close()
  redis.disconnect()
})

describe('the options of redisStore', () => {
  const redis = new Redis({ lazyConnect: true })

  it.each([
    [{ prefix: 7 }, 'prefix must be a string'],
    [{ timeoutMs: 0 }, 'timeoutMs must be an integer from 1 to 60000'],
    [{ timeoutMs: 1.5 }, 'timeoutMs must be'],
    [{ timeout: 250 }, 'timeout is not an option'],
    [{ replicas: 1 }, 'replicas must be an object'],
    [{ replicas: { min: 1 } }, 'replicas.timeoutMs must be'],
    [{ replicas: { timeoutMs: 100 } }, 'replicas.min must be'],
    [{ replicas: { min: 0, timeoutMs: 100 } }, 'replicas.min must be'],
    [{ replicas: { min: 1, timeoutMs: 0 } }, 'replicas.timeoutMs must be'],
    [{ replicas: { min: 1, timeoutMs: 100, max: 2 } }, 'replicas.max is not an option'],
    [null, 'redisStore options: the options must be an object'],
  ])('%j is a TypeError that says: %s', (options, message) => {
    const make = () => redisStore(redis, options as object)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})

describe('redisStore', () => {
  it('keeps one key a record, under its prefix, with a time to live', async () => {
    const { store: own } = openStore(server, { prefix: 'orders:' })
    const id = randomUUID()
    const request = requestFor({ leaseMs: 10_000, retentionMs: 50_000 })
    await own.consume(id, 20_000)
    await begin(own, request)
    const ttl = async (key: string) => Number(await server.command('PTTL', key))
    expect(await ttl(`orders:t:${id}`)).toBeGreaterThan(15_000)
    expect(await ttl(`orders:t:${id}`)).toBeLessThanOrEqual(20_000)
    expect(await ttl(`orders:k:${request.recordId}`)).toBeGreaterThan(50_000)
    expect(await ttl(`orders:k:${request.recordId}`)).toBeLessThanOrEqual(60_000)
  })

  it('is shared by every client with the same prefix', async () => {
    const { store: other } = openStore(server)
    const { store: elsewhere } = openStore(server, { prefix: 'other:' })
    const id = randomUUID()
    expect(await store.consume(id, 60_000)).toBe(true)
    expect(await other.consume(id, 60_000)).toBe(false)
    expect(await elsewhere.consume(id, 60_000)).toBe(true)
  })

  it('records a token for a second at least', async () => {
    const id = randomUUID()
    await store.consume(id, -5)
    expect(Number(await server.command('PTTL', `esa:t:${id}`))).toBeGreaterThan(500)
  })

  it('takes times that are no whole milliseconds', async () => {
    const request = requestFor({ leaseMs: 1100.0000000000002, retentionMs: 1000.5 })
    const run = await begin(store, request)
    expect(await store.renew(run)).toBe(true)
    expect(await store.settle(run, { type: 'finished', result: Buffer.from('x') })).toBe(true)
    expect(await store.consume(randomUUID(), 1500.5)).toBe(true)
  })

  it('works on when the server has forgotten its scripts', async () => {
    const request = requestFor()
    const run = await begin(store, request)
    await server.command('SCRIPT', 'FLUSH')
    expect(await store.renew(run)).toBe(true)
    await server.command('SCRIPT', 'FLUSH')
    const id = randomUUID()
    const uses = await Promise.all(Array.from({ length: 50 }, () => store.consume(id, 60_000)))
    expect(uses.filter(Boolean)).toHaveLength(1)
    await server.command('SCRIPT', 'FLUSH')
    expect(await store.settle(run, { type: 'finished', result: Buffer.from('x') })).toBe(true)
  })

  it('needs at most 150 bytes of Redis for a token', async () => {
    const { store: own } = openStore(server)
    const id = 'a'.repeat(24)
    await own.consume(id, 60_000)
    expect(Number(await server.command('MEMORY', 'USAGE', `esa:t:${id}`))).toBeLessThanOrEqual(150)
  })

  // Above that the allocator rounds up by more than that, whatever is stored.
  it.each([0, 10, 100, 300, 500, 700, 900])(
    'needs at most 350 bytes of Redis for a record beyond its result of %i bytes',
    async (bytes) => {
      const recordId = 'k'.repeat(24)
      const { store: own } = openStore(server, { prefix: `${bytes}:` })
      const run = await begin(own, requestFor({ recordId, fingerprint: 'f'.repeat(24) }))
      await own.settle(run, { type: 'finished', result: Buffer.alloc(bytes, 'x') })
      const usage = await server.command('MEMORY', 'USAGE', `${bytes}:k:${recordId}`)
      expect(Number(usage) - bytes).toBeLessThanOrEqual(350)
    },
  )

  it('closing it leaves the user’s client alone, and rejects from then on', async () => {
    const { store: own, redis } = openIoredisStore(server)
    await redis.ping()
    await own.consume(randomUUID(), 1000)
    await own.close()
    own.close()
    expect(await redis.ping()).toBe('PONG')
    const run = { ...requestFor(), fence: 1 }
    await expect(own.consume(randomUUID(), 1000)).rejects.toThrow('closed')
    await expect(own.reserve(requestFor())).rejects.toThrow('closed')
    await expect(own.renew(run)).rejects.toThrow('closed')
    await expect(own.settle(run, { type: 'released' })).rejects.toThrow('closed')
    await expect(own.check()).rejects.toThrow('closed')
    const clients = await server.command('CLIENT', 'LIST', 'ID', String(await redis.client('ID')))
    expect(clients).toContain('addr')
  })
})

describe('what a caller asks', () => {
  it('may have a key, an owner and a fingerprint of any text', async () => {
    const { store } = openStore(server)
    const texts = ['', '|', 'a\n\0', 'žluť', '😀', 'half \ud83d', '\ude00 of one']
    for (const owner of texts) {
      for (const fingerprint of texts) {
        const recordId = `k\r\n|é{x}${randomUUID()}`
        const request = requestFor({ recordId, owner, fingerprint })
        const run = await begin(store, request)
        expect(await store.reserve(request)).toEqual({ outcome: 'reserved', fence: run.fence })
        expect(await store.renew(run)).toBe(true)
        const other = retryOf(request, { fingerprint: `${fingerprint}!` })
        expect(await store.reserve(other)).toEqual({ outcome: 'mismatch' })
        expect(await store.settle(run, { type: 'finished', result: Buffer.from('x') })).toBe(true)
        const found = await store.reserve(retryOf(request))
        expect(found).toEqual({ outcome: 'finished', result: Buffer.from('x') })
      }
    }
  })

  it('is refused where a record could not hold it, and nothing is lost', async () => {
    const { store } = openStore(server)
    const request = requestFor()
    const run = await begin(store, request)
    for (const retentionMs of [2 ** 53, 1e21, Number.NaN, Number.POSITIVE_INFINITY]) {
      const fault = /fence or retention is out of range/
      await expect(store.reserve({ ...request, retentionMs })).rejects.toThrow(fault)
      await expect(store.renew({ ...run, retentionMs })).rejects.toThrow(fault)
      await expect(store.settle({ ...run, retentionMs }, { type: 'released' })).rejects.toThrow(
        fault,
      )
    }
    expect(await store.renew(run)).toBe(true)
  })
})
