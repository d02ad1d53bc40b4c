import express, { type RequestHandler } from 'express'
import {
  type EncryptedStoreOptions,
  encryptedStore,
  type LeasedIdempotencyOptions,
  type Store,
} from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { type Answer, call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { LIBRARY } from '../../support/redis/redis-clients.js'
import { OPTIONS } from './encrypted-kit.js'

const IBAN = 'CZ6508000000192000145399-Zalozna'
const ADDRESS = '/orders/of-a-caller-that-is-secret'
const BODY = JSON.stringify({ iban: IBAN, note: 'žluťoučký kůň' })

const createOrder: RequestHandler = (_request, response) => {
  response.status(201).location(ADDRESS).type('json').send(BODY)
}

/** What a text is in base64, whichever of three places of a group of bytes it begins at. */
function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text)
  return [0, 1, 2].flatMap((skipped) => {
    const rest = bytes.subarray(skipped)
    const whole = rest.subarray(0, rest.byteLength - (rest.byteLength % 3))
    return [whole.toString('base64'), whole.toString('base64url')]
  })
}

const formsOf = (text: string): string[] => [
  text,
  Buffer.from(text).toString('hex'),
  encodeURIComponent(text),
  ...base64Forms(text),
]

describe('receivers with an encrypted store', () => {
  let server: RedisServer
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.url)
    return async () => {
      redis.disconnect()
      await server.stop()
    }
  })
  const ends: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
    await redis.flushdb()
  })

  async function open(
    encryption: EncryptedStoreOptions,
    options: Partial<LeasedIdempotencyOptions> = {},
    handler = createOrder,
  ): Promise<Receiver> {
    const plain = redisStore(LIBRARY.connect({ port: server.port }), { timeoutMs: 5000 })
    const store: Store = encryptedStore(plain, encryption)
    const receiver = await openOrders({ express, handler, store, options })
    ends.push(
      () => store.close(),
      () => receiver.close(),
    )
    return receiver
  }

  async function theRecord(): Promise<{ name: string; value: Buffer }> {
    const [name = '', ...others] = await redis.keys('esa:k:*')
    expect(others).toEqual([])
    return { name, value: (await redis.getBuffer(name)) ?? Buffer.alloc(0) }
  }

  const whole = ({ headers, body, status }: Answer): unknown => {
    const { 'idempotent-replayed': _replayed, 'cache-control': _cacheControl, ...kept } = headers
    return { status, headers: kept, body: body.toString() }
  }

  it('keep nothing that was sent in any form, and replay it to the byte', async () => {
    const receiver = await open(OPTIONS)
    const key = newKey()
    const first = await call(receiver.port, { key, body: '{}' })
    expect(first.status).toBe(201)
    const { value } = await theRecord()
    const text = value.toString('latin1')
    expect(text).toContain('jwe:2026-01:')
    for (const secret of [IBAN, ADDRESS, 'application/json', 'location', BODY]) {
      for (const form of formsOf(secret)) expect(text).not.toContain(form)
    }
    const second = await call(receiver.port, { key, body: '{}' })
    expect(second.headers['idempotent-replayed']).toEqual(['true'])
    expect(whole(second)).toEqual(whole(first))
    expect(receiver.handled).toBe(1)
  })

  it('never run again what was damaged or moved', async () => {
    const receiver = await open(OPTIONS, { whenAbandoned: 'rerun' })
    const [mine, other] = [newKey(), newKey()]
    await call(receiver.port, { key: mine, body: '{}' })
    const { name, value } = await theRecord()
    await redis.del(name)
    await call(receiver.port, { key: other, body: '{}' })
    const theirs = await theRecord()
    await redis.set(theirs.name, value, 'KEEPTTL')
    const moved = await call(receiver.port, { key: other, body: '{}' })
    expect(moved).toMatchObject({ status: 409, problem: 'outcome-unknown' })
    const damaged = Buffer.from(theirs.value)
    damaged[damaged.byteLength - 1] = (damaged.at(-1) ?? 0) ^ 1
    await redis.set(theirs.name, damaged, 'KEEPTTL')
    const second = await call(receiver.port, { key: other, body: '{}' })
    expect(second).toMatchObject({ status: 409, problem: 'outcome-unknown' })
    expect(receiver.handled).toBe(2)
  })
})
