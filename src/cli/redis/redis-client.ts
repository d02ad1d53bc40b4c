import { z } from 'zod'
import type { RedisClientLike } from '../../stores/redis/clients/client-factory.js'
import type { OptionSpecs } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { CommandFailure, usageError } from '../frame/command-failure.js'
import { parseDuration } from '../frame/duration.js'
import { readJsonFile } from '../input/private-file.js'
import {
  type ClusterNodeTarget,
  loadLibrary,
  type OpenedClient,
  type RedisTarget,
} from './redis-library.js'

export const REDIS_OPTIONS: OptionSpecs = {
  redis: {
    kind: 'text',
    value: 'FILE',
    help: 'Redis address: {"url"}, {"cluster": [...]} or client options (else REDIS_URL)',
  },
  prefix: {
    kind: 'text',
    value: 'TEXT',
    help: 'the prefix of every key (default: esa:)',
    mayBeEmpty: true,
  },
  timeout: { kind: 'text', value: 'TIME', help: 'how long to wait for a reply (default: 1s)' },
}

export interface RedisAccess {
  /** Never connects: `redisStore` and similar functions open their own connections. */
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
 * @throws CommandFailure (2) if the location of Redis is missing, or no client library is installed.
 */
export async function withRedis<T>(
  context: Pick<CommandContext, 'arguments' | 'env'>,
  work: (redis: RedisAccess) => Promise<T>,
): Promise<T> {
  const args = context.arguments
  const timeout = args.text('timeout') ?? DEFAULT_TIMEOUT
  const timeoutMs = parseDuration('--timeout', timeout, TIMEOUT_RANGE)
  const target = await readRedisTarget(context)
  const { client, close } = await openClient(target)
  try {
    return await work({ client, prefix: args.text('prefix') ?? DEFAULT_PREFIX, timeoutMs })
  } finally {
    close()
  }
}

async function openClient(target: RedisTarget): Promise<OpenedClient> {
  const library = await loadLibrary()
  try {
    return library.open(target)
  } catch (error) {
    if (error instanceof CommandFailure) throw error
    // The message of the library may quote the options.
    throw usageError('redis_options', `${library.name} rejects the options in the --redis file`)
  }
}

/**
 * Reads the location of Redis from `--redis` or `REDIS_URL`.
 *
 * @throws CommandFailure (2), without any part of the file or the URL.
 */
async function readRedisTarget({
  arguments: args,
  env,
}: Pick<CommandContext, 'arguments' | 'env'>): Promise<RedisTarget> {
  const path = args.text('redis')
  if (path !== undefined)
    return targetOf(await readJsonFile('--redis', path, { secrecy: 'secret' }))
  const url = env['REDIS_URL']
  if (!url)
    throw usageError(
      'redis_options',
      'the address of Redis is missing: set REDIS_URL, such as redis://localhost:6379, or use --redis FILE',
    )
  if (!isRedisUrl(url)) throw usageError('redis_options', `REDIS_URL ${URL_FAULT}`)
  return { kind: 'url', url, options: {} }
}

const URL_FAULT =
  'must be a redis: or rediss: URL with a host, and a number as database if there is one, such as ' +
  'redis://localhost:6379/0'

/**
 * Stricter than ioredis, which would take another text for a socket path or a host name, and would use
 * database 0 if the database in the URL is not a number.
 */
function isRedisUrl(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, hostname, pathname, searchParams } = new URL(value)
  const [port, db] = [searchParams.get('port') ?? 0, searchParams.get('db') ?? 0]
  const isDatabase = /^\/?$/.test(pathname) || isWhole(pathname.slice(1))
  const isRedis = protocol === 'redis:' || protocol === 'rediss:'
  return isRedis && hostname !== '' && isDatabase && isPort(port) && isWhole(db)
}

/** Whether the value is a whole number, or a string of digits. */
function isWhole(value: unknown): boolean {
  return (typeof value === 'number' || typeof value === 'string') && /^\d{1,9}$/.test(String(value))
}

const MAX_PORT = 65_535

function isPort(value: unknown): boolean {
  return isWhole(value) && Number(value) <= MAX_PORT
}

const FILE_FORM =
  'the --redis file must contain exactly one of { "url" }, { "cluster": [...] } or client options ' +
  'with "host", "path" or "sentinels"'

/** Without one of them, ioredis would connect to localhost. */
const TARGET_OPTIONS = ['host', 'path', 'sentinels']

const textSchema = z.string().min(1)
const portSchema = z.unknown().refine(isPort)
const endpointSchema = z.looseObject({ host: textSchema, port: portSchema.nullish() })
const urlSchema = z.custom<string>(isRedisUrl)

/**
 * The members of the file that no client library checks: with a wrong value, Redis would seem
 * unreachable. Every other member is an option of the client.
 */
const fileSchema = z.looseObject({
  host: textSchema.optional(),
  path: textSchema.optional(),
  port: portSchema.optional(),
  db: z.unknown().refine(isWhole).optional(),
  sentinels: z.array(endpointSchema).min(1).optional(),
  url: urlSchema.optional(),
  cluster: z
    .array(z.union([urlSchema, endpointSchema]))
    .min(1)
    .optional(),
})

const FAULTS: Readonly<Record<PropertyKey, string>> = {
  host: 'must be a non-empty string',
  path: 'must be a non-empty string',
  port: 'must be a port number',
  db: 'must be a database number',
  sentinels: 'must be a list of { "host", "port" }',
  url: URL_FAULT,
  cluster: 'must be a list of redis: URLs or of { "host", "port" }',
}

function targetOf(document: unknown): RedisTarget {
  const { data, error } = fileSchema.safeParse(document)
  if (data === undefined) {
    const [name] = error.issues[0]?.path ?? []
    throw usageError(
      'redis_options',
      name === undefined ? FILE_FORM : `"${String(name)}" in the --redis file ${FAULTS[name]}`,
    )
  }
  const { url, cluster, ...options } = data
  const hasTargetOption = TARGET_OPTIONS.some((name) => Object.hasOwn(options, name))
  const ways = [url !== undefined, cluster !== undefined, hasTargetOption].filter(Boolean)
  if (ways.length !== 1) throw usageError('redis_options', FILE_FORM)
  if (url !== undefined) return { kind: 'url', url, options }
  if (cluster === undefined) return { kind: 'options', options }
  return { kind: 'cluster', nodes: cluster as ClusterNodeTarget[], options }
}
