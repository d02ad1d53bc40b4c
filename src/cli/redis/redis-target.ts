import type { ClusterNode } from 'ioredis'
import { isRecord } from '../../base/options.js'
import type { CommandContext } from '../frame/command.js'
import { wrong } from '../frame/command-failure.js'
import { readJsonFile } from '../input/private-file.js'

/** Where Redis is; `options` are what else stands in the file, for ioredis. */
export type RedisPlace = { readonly options: object } & (
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'cluster'; readonly nodes: ClusterNode[] }
  | { readonly kind: 'options' }
)

/**
 * Where `--redis` or `REDIS_URL` says that Redis is.
 *
 * @throws CommandFailure (2), without a word of either.
 */
export async function readRedisPlace({
  arguments: given,
  env,
}: Pick<CommandContext, 'arguments' | 'env'>): Promise<RedisPlace> {
  const path = given.text('redis')
  if (path !== undefined) return placeOf(await readJsonFile('--redis', path, 'secret'))
  const url = env['REDIS_URL']
  if (!url)
    throw wrong('redis_options', 'it is not said where Redis is: set REDIS_URL or give --redis')
  if (!isRedisUrl(url)) throw wrong('redis_options', `REDIS_URL ${URL_FAULT}`)
  return { kind: 'url', url, options: {} }
}

const URL_FAULT =
  'must be a redis: or rediss: URL with a host, and with a number as database if any'

/**
 * ioredis would take another text for the path of a socket, or for the name of a host, and go on with
 * database 0 where the URL names one that is no number.
 */
function isRedisUrl(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, hostname, pathname, searchParams } = new URL(value)
  const [port, db] = [searchParams.get('port') ?? 0, searchParams.get('db') ?? 0]
  const isDatabase = /^\/?$/.test(pathname) || isWhole(pathname.slice(1))
  const isRedis = protocol === 'redis:' || protocol === 'rediss:'
  return isRedis && hostname !== '' && isDatabase && isPort(port) && isWhole(db)
}

/** A number, or a text of digits only. */
const isWhole = (value: unknown): boolean =>
  (typeof value === 'number' || typeof value === 'string') && /^\d{1,9}$/.test(String(value))

const MAX_PORT = 65_535

const isPort = (value: unknown): boolean => isWhole(value) && Number(value) <= MAX_PORT

const SHAPE =
  'the file of --redis must hold one of { "url" }, { "cluster": [...] } or options of ioredis ' +
  'with "host", "path" or "sentinels"'

/** Without one of them ioredis would connect to this machine. */
const WHERE = ['host', 'path', 'sentinels']

/** Beside `url` and `cluster` may stand further options of ioredis. */
function placeOf(document: unknown): RedisPlace {
  if (!isRecord(document)) throw wrong('redis_options', SHAPE)
  const { url, cluster, ...options } = document
  checkOptions(options)
  const isElsewhere = WHERE.some((name) => Object.hasOwn(options, name))
  const ways = [url !== undefined, cluster !== undefined, isElsewhere].filter(Boolean)
  if (ways.length !== 1) throw wrong('redis_options', SHAPE)
  if (isElsewhere) return { kind: 'options', options }
  if (url === undefined) return { kind: 'cluster', nodes: nodesOf(cluster), options }
  if (!isRedisUrl(url)) throw wrong('redis_options', `"url" in the file of --redis ${URL_FAULT}`)
  return { kind: 'url', url, options }
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** What ioredis takes as it is, and what then ends as if Redis were out of reach. */
const OPTIONS: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  host: [isText, 'a text'],
  path: [isText, 'a text'],
  port: [isPort, 'a port'],
  db: [isWhole, 'the number of a database'],
  sentinels: [isListOf(isEndpoint), 'a list of { "host", "port" }'],
}

function checkOptions(options: Readonly<Record<string, unknown>>): void {
  for (const [name, [isRight, wanted]] of Object.entries(OPTIONS)) {
    if (!Object.hasOwn(options, name) || isRight(options[name])) continue
    throw wrong('redis_options', `"${name}" in the file of --redis must be ${wanted}`)
  }
}

function nodesOf(cluster: unknown): ClusterNode[] {
  if (isNodes(cluster)) return cluster as ClusterNode[]
  throw wrong(
    'redis_options',
    '"cluster" in the file of --redis must be a list of redis: URLs or of { "host", "port" }',
  )
}

const isNodes = isListOf((node) => isRedisUrl(node) || isEndpoint(node))

function isListOf(isMember: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.length > 0 && value.every(isMember)
}

function isEndpoint(value: unknown): boolean {
  return isRecord(value) && isText(value['host']) && isPort(value['port'] ?? 0)
}
