import type { Cluster, ClusterNode, Redis, RedisOptions } from 'ioredis'
import type { RedisClientOptions, RedisClusterOptions } from 'redis'
import type { RedisClientLike } from '../../stores/redis/clients/client-factory.js'
import { usageError } from '../frame/command-failure.js'

/** A node of a cluster: a URL, or host and port. */
export type ClusterNodeTarget = string | { readonly host: string; readonly port?: number | null }

/** The location of Redis; `options` are the other members of the `--redis` file, with ioredis's names. */
export type RedisTarget = { readonly options: object } & (
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'cluster'; readonly nodes: readonly ClusterNodeTarget[] }
  | { readonly kind: 'options' }
)

/** A client that is not connected. */
export interface OpenedClient {
  readonly client: RedisClientLike
  close(): void
}

/** A client library that is installed. */
interface ClientLibrary {
  readonly name: string
  /** @throws Error if the library rejects the options, CommandFailure if it lacks one of them. */
  open(target: RedisTarget): OpenedClient
}

const LOADERS: Readonly<Record<string, () => Promise<ClientLibrary['open']>>> = {
  async ioredis() {
    const library = await import('ioredis')
    return (target) => openIoredis(library, target)
  },
  async iovalkey() {
    // iovalkey is a fork of ioredis: its clients have the options and functions of ioredis's clients.
    const library = (await import('iovalkey')) as unknown as Ioredis
    return (target) => openIoredis(library, target)
  },
  async redis() {
    const { createClient, createCluster } = await import('redis')
    return (target) => {
      const { cluster, options } = nodeRedisOptions(target)
      return { client: cluster ? createCluster(cluster) : createClient(options), close() {} }
    }
  },
}

/**
 * Returns the first library that is installed.
 *
 * @throws CommandFailure (2) if none is.
 */
export async function loadLibrary(): Promise<ClientLibrary> {
  for (const [name, load] of Object.entries(LOADERS)) {
    const open = await load().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    })
    if (open !== undefined) return { name, open }
  }
  throw usageError(
    'dependency_missing',
    'none of ioredis, iovalkey and redis is installed: run npm install ioredis',
  )
}

type Ioredis = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>
type RedisSettings = RedisOptions & { replyMapping?: 'legacy' }
type ClusterSettings = NonNullable<ConstructorParameters<typeof Cluster>[1]>

function openIoredis(library: Ioredis, target: RedisTarget): OpenedClient {
  const client = createIoredis(library, target)
  // Without a listener, ioredis prints errors with the data that was sent.
  client.on('error', () => {})
  return { client, close: () => client.disconnect() }
}

function createIoredis({ Cluster, Redis }: Ioredis, target: RedisTarget): Redis | Cluster {
  const lazyOptions = { ...target.options, lazyConnect: true }
  if (target.kind === 'cluster') {
    return new Cluster([...target.nodes] as ClusterNode[], lazyOptions as ClusterSettings)
  }
  return target.kind === 'url'
    ? new Redis(target.url, lazyOptions as RedisSettings)
    : new Redis(lazyOptions as RedisSettings)
}

type Translation = (value: unknown) => object

const socket =
  (name: string): Translation =>
  (value) => ({ socket: { [name]: value } })

/** Translates each option of ioredis that node-redis has, too. */
const TRANSLATIONS: Readonly<Record<string, Translation>> = {
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
    // node-redis would ignore a query such as `?db=1`, and use database 0.
    if (new URL(target.url).search !== '') throw needsIoredis('a URL of Redis has a query')
    return { options: { ...translated(target.options), url: target.url } }
  }
  if (target.kind === 'options') return { options: translated(target.options) }
  const { redisOptions = {}, ...clusterOptions } = target.options as { redisOptions?: object }
  const { keyPrefix, ...defaults } = translated({ ...clusterOptions, ...redisOptions })
  const prefix = keyPrefix === undefined ? {} : { keyPrefix }
  const cluster = { rootNodes: target.nodes.map(rootNode), defaults, ...prefix }
  return { options: {}, cluster: cluster as RedisClusterOptions }
}

function translated(options: object): RedisClientOptions {
  let merged: { socket?: object } = {}
  for (const [name, value] of Object.entries(options)) {
    const translate = Object.hasOwn(TRANSLATIONS, name) ? TRANSLATIONS[name] : undefined
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
