import type { RedisClientOptions, RedisClusterOptions } from 'redis'
import { usageError } from '../frame/command-failure.js'
import type { ClusterNodeTarget, RedisTarget } from './redis-target.js'

type Value = (value: unknown) => object

const socket =
  (name: string): Value =>
  (value) => ({ socket: { [name]: value } })

/** The options of ioredis that node-redis has too, with their names there. */
const OPTIONS: Readonly<Record<string, Value>> = {
  host: socket('host'),
  port: (value) => ({ socket: { port: Number(value) } }),
  path: socket('path'),
  family: socket('family'),
  tls: (value) => ({ socket: { ...(value as object), tls: true } }),
  username: (username) => ({ username }),
  password: (password) => ({ password }),
  db: (db) => ({ database: Number(db) }),
  connectionName: (name) => ({ name }),
  keyPrefix: (keyPrefix) => ({ keyPrefix }),
}

interface NodeRedisOptions {
  readonly options: RedisClientOptions
  /** Only for a cluster. */
  readonly cluster?: RedisClusterOptions
}

/**
 * Returns the options of node-redis for a location of Redis.
 *
 * @throws CommandFailure (2) for an option that node-redis does not have.
 */
export function nodeRedisOptions(target: RedisTarget): NodeRedisOptions {
  if (target.kind === 'url') {
    // node-redis would ignore it, and use database 0.
    if (new URL(target.url).search !== '') throw needsIoredis('a URL of Redis has a query')
    return { options: { ...translated(target.options), url: target.url } }
  }
  if (target.kind === 'options') return { options: translated(target.options) }
  const { redisOptions = {}, ...own } = target.options as { redisOptions?: object }
  const { keyPrefix, ...others } = translated({ ...own, ...redisOptions })
  const prefix = keyPrefix === undefined ? {} : { keyPrefix }
  const cluster = { rootNodes: target.nodes.map(rootNode), defaults: others, ...prefix }
  return { options: {}, cluster: cluster as RedisClusterOptions }
}

function translated(options: object): RedisClientOptions {
  let merged: { socket?: object } = {}
  for (const [name, value] of Object.entries(options)) {
    const translate = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined
    if (translate === undefined) {
      throw needsIoredis(`the --redis file has the option ${JSON.stringify(name)}`)
    }
    const next: { socket?: object } = translate(value)
    merged = { ...merged, ...next, socket: { ...merged.socket, ...next.socket } }
  }
  return merged as RedisClientOptions
}

const needsIoredis = (what: string): Error =>
  usageError('redis_options', `${what}, which needs ioredis or iovalkey; redis is installed`)

function rootNode(node: ClusterNodeTarget): RedisClientOptions {
  if (typeof node === 'string') return { url: node }
  return { socket: { host: node.host, port: Number(node.port ?? 6379) } }
}
