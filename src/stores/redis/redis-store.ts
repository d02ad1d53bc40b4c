import { randomUUID } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { z } from 'zod'
import type { ReservationRequest } from '../../idempotency/store.js'
import { integerBetween, optionsObject, parseOptions } from '../../options.js'
import type { Store } from '../memory.js'
import { checkNode } from './check.js'
import { NoReply, openConnection } from './connection.js'
import * as idempotency from './idempotency.js'
import { CONSUME } from './single-use.js'
import { createTakeBacks } from './take-backs.js'

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /** Before the name of every key. Default: `esa:`. */
  readonly prefix?: string | undefined
  /** Milliseconds, 1 to 60,000, that a request waits for Redis in whatever state it is. Default: 250. */
  readonly timeoutMs?: number | undefined
}

const schema = optionsObject({
  prefix: z.string({ error: 'must be a string' }).default('esa:'),
  timeoutMs: integerBetween(1, 60_000).default(250),
})

/**
 * A store on Redis, shared by all instances of a receiver. It opens a connection of its own with the
 * options of `redis`, so that neither waits behind the other's commands, and that options which
 * would break its bounds do not apply to it.
 *
 * @throws TypeError when `redis` is no client of ioredis, or an option is unknown, of the wrong type
 * or out of its range.
 */
export function redisStore(redis: Redis | Cluster, options: RedisStoreOptions = {}): Store {
  if (typeof redis?.duplicate !== 'function') {
    throw new TypeError('redisStore: redis must be a Redis or Cluster client of ioredis')
  }
  const { prefix, timeoutMs } = parseOptions('redisStore options', schema, options)
  const connection = openConnection(redis, timeoutMs)
  const tokenKey = (id: string): string => `${prefix}t:${id}`
  const recordKey = (key: string): string => `${prefix}k:${key}`
  const takeBacks = createTakeBacks(({ key, owner, fingerprint, leaseMs }: ReservationRequest) =>
    connection.run(idempotency.TAKE_BACK, recordKey(key), [owner, fingerprint, String(leaseMs)]),
  )

  return {
    async consume(id, ttlMs) {
      const reply = await connection.run(CONSUME, tokenKey(id), [randomUUID(), String(ttlMs)])
      return reply === 1
    },
    async reserve(request) {
      const args = idempotency.reserveArguments(request)
      try {
        const reply = await connection.run(idempotency.RESERVE, recordKey(request.key), args)
        return idempotency.readReservation(reply)
      } catch (error) {
        if (error instanceof NoReply && error.mayHaveRun) takeBacks.add(request.owner, request)
        throw error
      }
    },
    async renew(run) {
      const args = idempotency.renewArguments(run)
      return (await connection.run(idempotency.RENEW, recordKey(run.key), args)) === 1
    },
    async settle(run, ending) {
      const args = idempotency.settleArguments(run, ending)
      return (await connection.run(idempotency.SETTLE, recordKey(run.key), args)) === 1
    },
    async check() {
      const masters = await connection.masters()
      await Promise.all(masters.map((node) => checkNode(node, timeoutMs)))
    },
    close() {
      takeBacks.close()
      connection.close()
    },
  }
}
