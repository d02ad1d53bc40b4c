import type { Cluster, ClusterNode, Redis, RedisOptions } from 'ioredis'
import { isRecord } from '../../base/options.js'
import type { OptionSpecs } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { parseDuration } from '../frame/duration.js'
import { readJsonFile } from '../input/private-file.js'

export const REDIS_OPTIONS: OptionSpecs = {
  redis: {
    kind: 'text',
    value: 'FILE',
    help: 'Redis address: {"url"}, {"cluster": [...]} or ioredis options (else REDIS_URL)',
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
  /** Connects on first use. `redisStore` and similar functions open their own connections. */
  readonly client: Redis | Cluster
  readonly prefix: string
  readonly timeoutMs: number
}

const DEFAULT_PREFIX = 'esa:'
const DEFAULT_TIMEOUT = '1s'
const TIMEOUT_RANGE = { minMs: 1, maxMs: 60_000 }

/**
 * Runs `work` on the Redis that `--redis` or `REDIS_URL` names, then closes the client. `work` must
 * close the connections that it opens itself.
 *
 * @throws CommandFailure (2) if the location of Redis is missing, or ioredis is not installed.
 */
export async function withRedis<T>(
  context: Pick<CommandContext, 'arguments' | 'env'>,
  work: (redis: RedisAccess) => Promise<T>,
): Promise<T> {
  const args = context.arguments
  const timeout = args.text('timeout') ?? DEFAULT_TIMEOUT
  const timeoutMs = parseDuration('--timeout', timeout, TIMEOUT_RANGE)
  const place = await readRedisTarget(context)
  const client = openClient(await loadIoredis(), place)
  // Without a listener, ioredis prints errors with the data that was sent.
  client.on('error', () => {})
  try {
    return await work({ client, prefix: args.text('prefix') ?? DEFAULT_PREFIX, timeoutMs })
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
    throw usageError('dependency_missing', 'ioredis is not installed: run npm install ioredis')
  }
}

type RedisSettings = RedisOptions & { replyMapping?: 'legacy' }
type ClusterSettings = NonNullable<ConstructorParameters<typeof Cluster>[1]>

function openClient({ Cluster, Redis }: Ioredis, place: RedisTarget): Redis | Cluster {
  const lazily = { ...place.options, lazyConnect: true }
  try {
    if (place.kind === 'cluster') {
      return new Cluster(place.nodes, lazily as ClusterSettings)
    }
    const options = lazily as RedisSettings
    return place.kind === 'url' ? new Redis(place.url, options) : new Redis(options)
  } catch {
    // The message of ioredis may quote the options.
    throw usageError('redis_options', 'ioredis rejects the options in the --redis file')
  }
}

/** The location of Redis; `options` are the other members of the file, for ioredis. */
type RedisTarget = { readonly options: object } & (
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'cluster'; readonly nodes: ClusterNode[] }
  | { readonly kind: 'options' }
)

/**
 * Reads the location of Redis from `--redis` or `REDIS_URL`.
 *
 * @throws CommandFailure (2), without any part of either.
 */
async function readRedisTarget({
  arguments: args,
  env,
}: Pick<CommandContext, 'arguments' | 'env'>): Promise<RedisTarget> {
  const path = args.text('redis')
  if (path !== undefined) return targetOf(await readJsonFile('--redis', path, 'secret'))
  const url = env['REDIS_URL']
  if (!url)
    throw usageError(
      'redis_options',
      'the address of Redis is missing: set REDIS_URL or use --redis',
    )
  if (!isRedisUrl(url)) throw usageError('redis_options', `REDIS_URL ${URL_FAULT}`)
  return { kind: 'url', url, options: {} }
}

const URL_FAULT =
  'must be a redis: or rediss: URL with a host; its database, if any, must be a number'

/**
 * Checked here, because ioredis would take another text for a socket path or a host name, and would
 * use database 0 if the database in the URL is not a number.
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
const isWhole = (value: unknown): boolean =>
  (typeof value === 'number' || typeof value === 'string') && /^\d{1,9}$/.test(String(value))

const MAX_PORT = 65_535

const isPort = (value: unknown): boolean => isWhole(value) && Number(value) <= MAX_PORT

const FILE_FORM =
  'the --redis file must contain exactly one of { "url" }, { "cluster": [...] } or ioredis options ' +
  'with "host", "path" or "sentinels"'

/** Without one of them, ioredis would connect to localhost. */
const TARGET_OPTIONS = ['host', 'path', 'sentinels']

/** `url` and `cluster` may have further ioredis options next to them. */
function targetOf(document: unknown): RedisTarget {
  if (!isRecord(document)) throw usageError('redis_options', FILE_FORM)
  const { url, cluster, ...options } = document
  checkOptions(options)
  const isElsewhere = TARGET_OPTIONS.some((name) => Object.hasOwn(options, name))
  const ways = [url !== undefined, cluster !== undefined, isElsewhere].filter(Boolean)
  if (ways.length !== 1) throw usageError('redis_options', FILE_FORM)
  if (isElsewhere) return { kind: 'options', options }
  if (url === undefined) return { kind: 'cluster', nodes: nodesOf(cluster), options }
  if (!isRedisUrl(url)) throw usageError('redis_options', `"url" in the --redis file ${URL_FAULT}`)
  return { kind: 'url', url, options }
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** Options that ioredis does not check: with a wrong value, Redis would seem unreachable. */
const OPTIONS: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  host: [isText, 'a non-empty string'],
  path: [isText, 'a non-empty string'],
  port: [isPort, 'a port number'],
  db: [isWhole, 'a database number'],
  sentinels: [isListOf(isEndpoint), 'a list of { "host", "port" }'],
}

function checkOptions(options: Readonly<Record<string, unknown>>): void {
  for (const [name, [isRight, wanted]] of Object.entries(OPTIONS)) {
    if (!Object.hasOwn(options, name) || isRight(options[name])) continue
    throw usageError('redis_options', `"${name}" in the --redis file must be ${wanted}`)
  }
}

function nodesOf(cluster: unknown): ClusterNode[] {
  if (isNodes(cluster)) return cluster as ClusterNode[]
  throw usageError(
    'redis_options',
    '"cluster" in the --redis file must be a list of redis: URLs or of { "host", "port" }',
  )
}

const isNodes = isListOf((node) => isRedisUrl(node) || isEndpoint(node))

function isListOf(isMember: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.length > 0 && value.every(isMember)
}

function isEndpoint(value: unknown): boolean {
  return isRecord(value) && isText(value['host']) && isPort(value['port'] ?? 0)
}
