import type { ClusterNode } from 'ioredis'
import { isRecord } from '../base/options.js'
import type { CommandContext } from './command.js'
import { wrong } from './failure.js'
import { readJsonFile } from './file.js'

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

const URL_FAULT = 'must be a redis: or rediss: URL with a host'

/** ioredis would take another text for the path of a socket, or for the name of a host. */
function isRedisUrl(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, hostname } = new URL(value)
  return (protocol === 'redis:' || protocol === 'rediss:') && hostname !== ''
}

const SHAPE =
  'the file of --redis must hold one of { "url" }, { "cluster": [...] } or options of ioredis ' +
  'with "host", "path" or "sentinels"'

/** Without one of them ioredis would connect to this machine. */
const WHERE = ['host', 'path', 'sentinels']

/** Beside `url` and `cluster` may stand further options of ioredis. */
function placeOf(document: unknown): RedisPlace {
  if (!isRecord(document)) throw wrong('redis_options', SHAPE)
  const { url, cluster, ...options } = document
  const isElsewhere = WHERE.some((name) => Object.hasOwn(options, name))
  const ways = [url !== undefined, cluster !== undefined, isElsewhere].filter(Boolean)
  if (ways.length !== 1) throw wrong('redis_options', SHAPE)
  if (isElsewhere) return { kind: 'options', options }
  if (url === undefined) return { kind: 'cluster', nodes: nodesOf(cluster), options }
  if (!isRedisUrl(url)) throw wrong('redis_options', `"url" in the file of --redis ${URL_FAULT}`)
  return { kind: 'url', url, options }
}

function nodesOf(cluster: unknown): ClusterNode[] {
  if (Array.isArray(cluster) && cluster.length > 0 && cluster.every(isNode)) return cluster
  throw wrong(
    'redis_options',
    '"cluster" in the file of --redis must be a list of redis: URLs or of { "host", "port" }',
  )
}

const isNode = (node: unknown): node is ClusterNode =>
  isRedisUrl(node) || (isRecord(node) && typeof node['host'] === 'string')
