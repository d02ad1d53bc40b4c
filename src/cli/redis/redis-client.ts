import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { OptionSpecs } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { wrong } from '../frame/command-failure.js'
import { parseDuration } from '../frame/duration.js'
import { type RedisPlace, readRedisPlace } from './redis-target.js'

export const REDIS_OPTIONS: OptionSpecs = {
  redis: {
    kind: 'text',
    value: 'FILE',
    help: 'where Redis is: {"url"}, {"cluster": [...]} or ioredis options (else REDIS_URL)',
  },
  prefix: {
    kind: 'text',
    value: 'TEXT',
    help: 'before the name of every key (default: esa:)',
    mayBeEmpty: true,
  },
  timeout: { kind: 'text', value: 'TIME', help: 'how long to wait for a reply (default: 1s)' },
}

/** What a command needs to work on Redis. */
export interface RedisAccess {
  /** Connects when it is first used; `redisStore` and its like open connections of their own. */
  readonly client: Redis | Cluster
  readonly prefix: string
  readonly timeoutMs: number
}

const DEFAULT_PREFIX = 'esa:'
const DEFAULT_TIMEOUT = '1s'
const TIMEOUT_RANGE = { leastMs: 1, mostMs: 60_000 }

/**
 * Does work on the Redis that `--redis` or `REDIS_URL` names, and then closes the client. What the
 * work opens beside it, it has to close.
 *
 * @throws CommandFailure (2) when it is not said where Redis is, or ioredis is not installed.
 */
export async function withRedis<T>(
  context: Pick<CommandContext, 'arguments' | 'env'>,
  work: (redis: RedisAccess) => Promise<T>,
): Promise<T> {
  const given = context.arguments
  const timeout = given.text('timeout') ?? DEFAULT_TIMEOUT
  const timeoutMs = parseDuration('--timeout', timeout, TIMEOUT_RANGE)
  const place = await readRedisPlace(context)
  const client = openClient(await loadIoredis(), place)
  // Without a listener ioredis prints errors, and what was sent with them.
  client.on('error', () => {})
  try {
    return await work({ client, prefix: given.text('prefix') ?? DEFAULT_PREFIX, timeoutMs })
  } finally {
    client.disconnect()
  }
}

type Ioredis = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>

async function loadIoredis(): Promise<Ioredis> {
  try {
    return await import('ioredis')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw wrong('dependency_missing', 'ioredis is not installed: npm install ioredis')
  }
}

type RedisSettings = RedisOptions & { replyMapping?: 'legacy' }
type ClusterSettings = NonNullable<ConstructorParameters<typeof Cluster>[1]>

function openClient({ Cluster, Redis }: Ioredis, place: RedisPlace): Redis | Cluster {
  const lazily = { ...place.options, lazyConnect: true }
  try {
    if (place.kind === 'cluster') {
      return new Cluster(place.nodes, lazily as ClusterSettings)
    }
    const options = lazily as RedisSettings
    return place.kind === 'url' ? new Redis(place.url, options) : new Redis(options)
  } catch {
    // What ioredis says may quote the options.
    throw wrong('redis_options', 'ioredis does not take the options in the file of --redis')
  }
}
