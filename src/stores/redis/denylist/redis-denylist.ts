import { hostname } from 'node:os'
import { z } from 'zod'
import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import {
  integerBetween,
  isShortText,
  lazy,
  numberBetween,
  optionsObject,
  parseOptions,
  SHORT_TEXT_FAULT,
} from '../../../base/options.js'
import type { LiveDenylist } from '../../../verification/denylist/live-denylist.js'
import { createLocalDenylist } from '../../../verification/denylist/local-denylist.js'
import { missingRight, refusedRight } from '../connection/check-nodes.js'
import type { RedisClientLike } from '../connection/client.js'
import { ownClients } from '../connection/own-clients.js'
import { type Connection, openConnection, startRedisCall } from '../connection/redis-connection.js'
import { createOperations, type DenylistOperations } from './operations.js'
import { createPoll } from './poll.js'
import { createReports } from './receiver-reports.js'
import { type RunOnList, TRY_RECEIVER } from './scripts.js'

/** Options of `redisDenylist`. */
export interface RedisDenylistOptions {
  /** The prefix of every key. Default: `esa:`. */
  readonly prefix?: string | undefined
  /** Milliseconds, 50 to 250, after which a version check or a report counts as failed. Default: 250. */
  readonly timeoutMs?: number | undefined
  /** The poll interval in milliseconds, 50 to 250. Default: 250. */
  readonly pollMs?: number | undefined
  /** Seconds, 10 to 604,800, for which an unconfirmed list still applies. Default: 3600. */
  readonly maxStaleSeconds?: number | undefined
  /** Whether to refuse or accept requests while the list is unknown. Default: `'refuse'`, with a 503. */
  readonly whenUnknown?: 'refuse' | 'accept' | undefined
  /** The name of this receiver, 1 to 256 characters. Default: host and process id. */
  readonly name?: string | undefined
}

/** A live denylist on Redis. It starts polling with the first call of `lists` or `ready`. */
export interface RedisDenylist extends LiveDenylist, DenylistOperations {}

/** The time for which a list counts as fresh after it was read. */
const READY_TIMEOUT_MS = 1500
/** An operation that gets no reply for this time is sent again. */
const TRY_TIMEOUT_MS = 500

const schema = lazy(() =>
  optionsObject({
    prefix: z.string({ error: 'must be a string' }).default('esa:'),
    timeoutMs: integerBetween(50, 250).default(250),
    pollMs: integerBetween(50, 250).default(250),
    maxStaleSeconds: numberBetween(10, 604_800, 'seconds').default(3600),
    whenUnknown: z
      .enum(['refuse', 'accept'], { error: "must be 'refuse' or 'accept'" })
      .default('refuse'),
    name: z
      .custom<string>(isShortText, { error: SHORT_TEXT_FAULT })
      .default(() => `${hostname()}:${process.pid}`),
  }),
)

/**
 * Creates a denylist on Redis, whose changes all instances of a receiver apply within a second. `redis` is a
 * client as `redisStore` takes it. The denylist opens its own connections with the options of `redis`: one
 * for polls, and one for `deny` and the other operations. They hold the process open until `close()`.
 *
 * @throws TypeError if `redis` is anything else, or an option is unknown, of the wrong type or out of its range.
 *
 * @example
 * ```ts
 * import { redisDenylist } from 'express-service-auth/redis'
 * import { Redis } from 'ioredis'
 *
 * const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
 * const denylist = redisDenylist(redis, { prefix: 'orders:' })
 * const target = { issuer: 'https://api.example.com', kind: 'caller', value: 'billing' } as const
 * const until = Date.now() / 1000 + 7200
 * await denylist.deny({ ...target, reason: 'host taken over', by: 'anna', at: Date.now() / 1000, until })
 * console.log((await denylist.entries()).map(({ value }) => value)) // [ 'billing' ]
 * await denylist.allow(target)
 * denylist.close()
 * redis.disconnect()
 * ```
 */
export function redisDenylist(
  redis: RedisClientLike,
  options: RedisDenylistOptions = {},
): RedisDenylist {
  const clients = ownClients('redisDenylist', redis)
  const settings = parseOptions('redisDenylist options', schema, options)
  const { prefix, timeoutMs } = settings
  const keys = KEYS.map((key) => `${prefix}{denylist}:${key}`)
  const polling = openConnection(clients, timeoutMs, TRY_TIMEOUT_MS)
  const writing = openConnection(clients, timeoutMs, TRY_TIMEOUT_MS)
  const local = createLocalDenylist(settings)
  const reports = createReports(runOn(polling, keys), settings)
  const poll = createPoll(runOn(polling, keys), { ...settings, local, reports })
  const acceptsUnknown = settings.whenUnknown === 'accept'
  let isClosed = false

  /** Throws if a right is missing without which the list is not read, or this receiver does not report. */
  async function requireRights(): Promise<void> {
    if (!local.isKnown() && local.health().lastError !== 'server') return
    const call = { script: TRY_RECEIVER, keys, args: [] }
    // Another error may hide it: then the state of the list decides.
    const right = await missingRight(writing, call).catch(({ message }: Error) =>
      refusedRight(message, prefix),
    )
    if (right === undefined) return
    throw new ServiceAuthError('unfit', `the denylist: Redis does not let the user ${right}`)
  }

  async function ready(): Promise<void> {
    poll.start()
    const deadline = performance.now() + READY_TIMEOUT_MS
    while (!local.isKnown() && !isClosed && performance.now() < deadline) {
      await poll.nextPoll()
      if (acceptsUnknown) break
    }
    await requireRights()
    if (local.isKnown() || acceptsUnknown) return
    const { lastError } = local.health()
    throw new ServiceAuthError('unavailable', `the denylist could not be read: ${lastError}`)
  }

  return {
    ...createOperations(runOn(writing, keys)),
    ready,
    lists(issuer) {
      poll.start()
      return local.lists(issuer)
    },
    catchUp: poll.catchUp,
    health: local.health,
    close() {
      if (isClosed) return
      isClosed = true
      poll.close()
      writing.close()
      void reports.leave().finally(polling.close)
    },
  }
}

/** Their hash tag puts them into one slot of a cluster. */
const KEYS = ['version', 'entries', 'reasons', 'marks', 'receivers']

const runOn =
  (connection: Connection, keys: readonly string[]): RunOnList =>
  async ({ script, args = [], timeoutMs }) =>
    textsOf(await connection.run({ script, keys, args }, startRedisCall(timeoutMs)))

const textsOf = (reply: unknown): unknown => {
  if (Array.isArray(reply)) return reply.map(textsOf)
  return Buffer.isBuffer(reply) ? reply.toString() : reply
}
