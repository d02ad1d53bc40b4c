import type { EventEmitter } from 'node:events'
import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RedisClientLike } from '../../stores/redis/connection/client.js'
import { ownClients } from '../../stores/redis/connection/own-clients.js'
import type { OptionSpecs } from '../frame/arguments.js'
import { parseDuration } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'

export const REDIS_OPTIONS: OptionSpecs = {
  '--redis FILE': 'a JavaScript module that exports a Redis client as default (else REDIS_URL)',
  '--prefix [TEXT]': 'the prefix of every key (default: esa:)',
  '--timeout TIME': 'how long to wait for a reply (default: 1s)',
}

export interface RedisAccess {
  /** Carries no command: `redisStore` and similar functions open their own connections. */
  readonly client: RedisClientLike
  readonly prefix: string
  readonly timeoutMs: number
}

const DEFAULT_PREFIX = 'esa:'
const DEFAULT_TIMEOUT = '1s'
const TIMEOUT_RANGE = { minMs: 1, maxMs: 60_000 }

/**
 * Runs `work` on the Redis that `--redis` or `REDIS_URL` names. `work` must close the connections that it
 * opens.
 *
 * @throws CommandFailure (2) if there is no client, or no client library is installed.
 */
export async function withRedis<T>(
  context: Pick<CommandContext, 'arguments' | 'env'>,
  work: (redis: RedisAccess) => Promise<T>,
): Promise<T> {
  const args = context.arguments
  const timeout = args.text('timeout') ?? DEFAULT_TIMEOUT
  const timeoutMs = parseDuration('--timeout', timeout, TIMEOUT_RANGE)
  const path = args.text('redis')
  const client =
    path === undefined ? await clientOf(context.env['REDIS_URL']) : await exportedClient(path)
  // Without a listener, ioredis prints errors with the data that was sent, and node-redis throws them.
  const emitter = client as unknown as EventEmitter
  emitter.on('error', () => {})
  try {
    return await work({ client, prefix: args.text('prefix') ?? DEFAULT_PREFIX, timeoutMs })
  } finally {
    closeClient(client)
  }
}

function closeClient(client: RedisClientLike): void {
  if (!('destroy' in client)) (client as unknown as { disconnect(): void }).disconnect()
  else if (client.isOpen) client.destroy()
}

const MODULE_EXTENSIONS = ['.js', '.mjs', '.cjs']
const WRITABLE_BY_OTHERS = 0o022

/** @throws CommandFailure (2), without the path and without what the module throws, which may be a secret. */
async function exportedClient(path: string): Promise<RedisClientLike> {
  const file = resolve(path)
  const found = await stat(file).catch(() => undefined)
  if (!found?.isFile()) throw usageError('the --redis file does not exist: check its path', 'file')
  if (!MODULE_EXTENSIONS.includes(extname(file))) {
    throw usageError(`the --redis file must end in ${MODULE_EXTENSIONS.join(', ')}`, 'file')
  }
  // Windows has no permission bits.
  if (process.platform !== 'win32' && (found.mode & WRITABLE_BY_OTHERS) !== 0) {
    throw usageError('other users can change the --redis file: run chmod go-w on it', 'file')
  }
  const loaded = await import(pathToFileURL(file).href).catch((error: NodeJS.ErrnoException) => {
    const why = error?.code ?? error?.name ?? 'an error'
    throw usageError(`the --redis file cannot be loaded (${why}): run it with node`, 'file')
  })
  try {
    ownClients('default export of the --redis file', loaded.default)
  } catch (error) {
    throw usageError(`the ${(error as Error).message}`, 'redis_options')
  }
  return loaded.default
}

/** Each makes a client that is not connected. */
const LIBRARIES: Readonly<Record<string, (url: string) => Promise<RedisClientLike>>> = {
  async ioredis(url) {
    const { Redis } = await import('ioredis')
    return new Redis(url, { lazyConnect: true })
  },
  async iovalkey(url) {
    const { Redis } = await import('iovalkey')
    return new Redis(url, { lazyConnect: true })
  },
  async redis(url) {
    const { createClient } = await import('redis')
    // node-redis would ignore a query such as `?db=1`, and use database 0.
    if (new URL(url).search === '') return createClient({ url })
    throw usageError('REDIS_URL has a query, which redis (node-redis) ignores', 'redis_options')
  },
}

/**
 * Returns a client of the first library that is installed.
 *
 * @throws CommandFailure (2), without any part of the URL.
 */
async function clientOf(url: string | undefined): Promise<RedisClientLike> {
  if (!url) {
    throw usageError(
      'the address of Redis is missing: set REDIS_URL, such as redis://localhost:6379, or use --redis FILE',
      'redis_options',
    )
  }
  if (!isRedisUrl(url)) {
    throw usageError(
      'REDIS_URL must be a redis: or rediss: URL with a host, and a number as database if there is ' +
        'one, such as redis://localhost:6379/0',
      'redis_options',
    )
  }
  for (const open of Object.values(LIBRARIES)) {
    const client = await open(url).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    })
    if (client !== undefined) return client
  }
  throw usageError(
    'none of ioredis, iovalkey and redis is installed: run npm install ioredis',
    'dependency_missing',
  )
}

/**
 * Stricter than ioredis, which would take another text for a socket path or a host name, and would use
 * database 0 if the database in the URL is not a number.
 */
function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, pathname, searchParams } = new URL(text)
  const database = searchParams.get('db') ?? pathname.slice(1)
  const isRedis = protocol === 'redis:' || protocol === 'rediss:'
  return isRedis && hostname !== '' && /^\d{0,9}$/.test(database)
}
