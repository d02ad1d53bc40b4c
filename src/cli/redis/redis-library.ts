import type { Cluster, ClusterNode, Redis, RedisOptions } from 'ioredis'
import type { RedisClientLike } from '../../stores/redis/clients/client-factory.js'
import { usageError } from '../frame/command-failure.js'
import { nodeRedisOptions } from './node-redis-options.js'
import type { RedisTarget } from './redis-target.js'

/** A client that is not connected. */
export interface OpenedClient {
  readonly client: RedisClientLike
  close(): void
}

/** A client library that is installed. */
export interface ClientLibrary {
  readonly name: string
  /** @throws Error if the library rejects the options, CommandFailure if they have no meaning for it. */
  open(target: RedisTarget): OpenedClient
}

const LOADERS: Readonly<Record<string, () => Promise<ClientLibrary['open']>>> = {
  async ioredis() {
    const library = await import('ioredis')
    return (target) => openIoredis(library, target)
  },
  async iovalkey() {
    // Its clients have the same options and functions.
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
  const lazily = { ...target.options, lazyConnect: true }
  if (target.kind === 'cluster') {
    return new Cluster([...target.nodes] as ClusterNode[], lazily as ClusterSettings)
  }
  return target.kind === 'url'
    ? new Redis(target.url, lazily as RedisSettings)
    : new Redis(lazily as RedisSettings)
}
