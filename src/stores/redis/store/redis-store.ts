import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { integerBetween, lazy, optionsObject, parseOptions } from '../../../base/options.js'
import type { ReservationRequest } from '../../../idempotency/leased/idempotency-store.js'
import { createRecordKeeper } from '../../../idempotency/leased/record-keeper.js'
import type { Store } from '../../memory-store.js'
import { checkMasters } from '../connection/check-nodes.js'
import { type RedisClientLike, type Script, script } from '../connection/client.js'
import { openReplicated } from '../connection/group-commit.js'
import { ownClients } from '../connection/own-clients.js'
import { openConnection, startRedisCall } from '../connection/redis-connection.js'
import { createCompensation, UNDO_RESERVE, undoArguments } from './compensation.js'
import * as scripts from './idempotency-scripts.js'
import { createRecordAccess } from './record-access.js'

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /** The prefix of every key. Default: `esa:`. */
  readonly prefix?: string | undefined
  /** Milliseconds, 1 to 60,000, that a request waits for Redis, even if it is down. Default: 250. */
  readonly timeoutMs?: number | undefined
  /**
   * Reservations count only if at least `min` replicas (1 or more) have acknowledged them within `timeoutMs` (1 to
   * 60,000), in addition to the store's `timeoutMs`. Default: none, so a failover may lose a reservation.
   */
  readonly replicas?: { readonly min: number; readonly timeoutMs: number } | undefined
}

/** A reservation of which an attempt may still reach Redis; `granted` is the fence that the caller got, 0 for none. */
interface LateReservation {
  readonly request: ReservationRequest
  readonly granted: number
}

/** The minimum time for which a token is recorded, even if clocks differ. */
const MIN_TTL_MS = 1000
const MAX_TIMEOUT_MS = 60_000

const schema = lazy(() =>
  optionsObject({
    prefix: z.string({ error: 'must be a string' }).default('esa:'),
    timeoutMs: integerBetween(1, MAX_TIMEOUT_MS).default(250),
    replicas: optionsObject({
      min: integerBetween(1, Number.MAX_SAFE_INTEGER),
      timeoutMs: integerBetween(1, MAX_TIMEOUT_MS),
    }).optional(),
  }),
)

/**
 * Creates a store on Redis, shared by all instances of a receiver. `redis` is a `Redis` or `Cluster` of
 * ioredis 5 or 6 or of iovalkey 0.3 or 0.4, or what `createClient` or `createCluster` of node-redis 5 or 6
 * returns. The store opens its own connections with the options of `redis`, so that app and store do not
 * wait for each other's commands. Options that would break the store's time limits do not apply to these
 * connections, which hold the process open until `close()`.
 *
 * @throws TypeError if `redis` is anything else, or an option is unknown, of the wrong type or out of its range.
 *
 * @example
 * ```ts
 * import { requireIdempotencyKey } from 'express-service-auth'
 * import { redisStore } from 'express-service-auth/redis'
 * import { Redis } from 'ioredis'
 *
 * const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
 * const store = redisStore(redis, { prefix: 'orders:' })
 * for (const warning of await store.check()) console.warn(warning)
 * const once = requireIdempotencyKey({ store })
 * store.close()
 * redis.disconnect()
 * ```
 */
export function redisStore(redis: RedisClientLike, options: RedisStoreOptions = {}): Store {
  const clients = ownClients('redisStore', redis)
  const { prefix, timeoutMs, replicas } = parseOptions('redisStore options', schema, options)
  const connection = openConnection(clients, timeoutMs)
  const reservations =
    replicas === undefined ? connection : openReplicated(connection, { timeoutMs, replicas })
  const tokenKey = (id: string): string => `${prefix}t:${id}`
  const redisKeyOf = (recordId: string): string => `${prefix}k:${recordId}`
  const compensation = createCompensation(({ request, granted }: LateReservation) =>
    // On the connection of the reservation, which the undo must not overtake.
    reservations.run({
      script: UNDO_RESERVE,
      keys: [redisKeyOf(request.recordId)],
      args: undoArguments(request, granted),
    }),
  )
  /** Assumes that an attempt reaches Redis at most one lease late. */
  const undo = (request: ReservationRequest, granted = 0): void =>
    compensation.add({ request, granted }, request.leaseMs)

  return {
    ...createRecordKeeper(createRecordAccess(connection, { timeoutMs, keyOf: redisKeyOf })),
    async consume(id, ttlMs) {
      const args = [randomUUID(), String(Math.max(MIN_TTL_MS, Math.ceil(ttlMs)))]
      const call = { script: CONSUME, keys: [tokenKey(id)], args, isReserved: isConsumed }
      return isConsumed(await reservations.run(call))
    },
    async reserve(request) {
      const args = scripts.reserveArguments(request)
      const { isReserved } = scripts
      const call = {
        script: scripts.RESERVE,
        keys: [redisKeyOf(request.recordId)],
        args,
        isReserved,
      }
      const state = startRedisCall(timeoutMs + (replicas?.timeoutMs ?? 0))
      try {
        const reply = await reservations.run(call, state)
        const reservation = scripts.readReservation(reply)
        // The first attempt got no reply. It may still reach Redis, once the key is free, and take the key.
        if (state.isRepeated) {
          undo(request, reservation.outcome === 'reserved' ? reservation.fence : 0)
        }
        return reservation
      } catch (error) {
        if (state.mayHaveRun) undo(request)
        throw error
      }
    },
    async renew(run) {
      const args = scripts.renewArguments(run)
      const call = { script: scripts.RENEW, keys: [redisKeyOf(run.recordId)], args }
      return (await connection.run(call)) === 1
    },
    async settle(run, ending) {
      const args = scripts.settleArguments(run, ending)
      const call = { script: scripts.SETTLE, keys: [redisKeyOf(run.recordId)], args }
      return (await connection.run(call)) === 1
    },
    check: () => checkMasters({ connection, prefix, sendsWait: replicas !== undefined }),
    health: connection.health.read,
    close() {
      compensation.close()
      if (reservations !== connection) reservations.close()
      connection.close()
    },
  }
}

/**
 * Records the token, with the nonce of the call as its value, unless another call has recorded it. ARGV: nonce,
 * time to live. A retry after a lost reply finds its nonce and writes again, because `WAIT` covers only writes of
 * the connection that sends it. `SET NX GET` would need Redis 7.
 */
export const CONSUME: Script = script(`
local nonce = redis.call('GET', KEYS[1])
if nonce and nonce ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)

const isConsumed = (reply: unknown): boolean => reply === 1
