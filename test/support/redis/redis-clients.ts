import type { RedisClientLike } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey'
import { Redis as Valkey03, Cluster as ValkeyCluster03 } from 'iovalkey03'
import {
  createClient,
  createCluster,
  type RedisClientOptions,
  type RedisClusterOptions,
} from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5'

/** The only library of `LIBRARIES` to run the tests with, if this variable is set. */
const WANTED = process.env['REDIS_CLIENT']
/** Otherwise, most tests run with the first of these, and tests of `CHOSEN_LIBRARIES` with both. */
const DEFAULTS = ['ioredis 6', 'ioredis 5']
const isChosen = (name: string): boolean =>
  WANTED === undefined ? DEFAULTS.includes(name) : name === WANTED

/** The supported releases of ioredis and iovalkey, with the types of ioredis 6. */
const ALL_MAJORS = [
  { major: 'ioredis 6', RedisOfRelease: Redis, ClusterOfRelease: Cluster },
  { major: 'ioredis 5', RedisOfRelease: Redis5, ClusterOfRelease: Cluster5 },
  { major: 'iovalkey 0.4', RedisOfRelease: Valkey, ClusterOfRelease: ValkeyCluster },
  { major: 'iovalkey 0.3', RedisOfRelease: Valkey03, ClusterOfRelease: ValkeyCluster03 },
] as unknown as readonly {
  readonly major: string
  readonly RedisOfRelease: typeof Redis
  readonly ClusterOfRelease: typeof Cluster
}[]

const chosenMajors = ALL_MAJORS.filter(({ major }) => isChosen(major))
/** The majors of ioredis and iovalkey under test; never empty, so that tests of ioredis always run. */
export const MAJORS = chosenMajors.length > 0 ? chosenMajors : ALL_MAJORS.slice(0, 1)

/** The supported releases of node-redis, with the types of node-redis 6. */
export const NODE_REDIS = [
  { major: 'node-redis 6', createClient, createCluster },
  { major: 'node-redis 5', createClient: createClient5, createCluster: createCluster5 },
] as unknown as readonly {
  readonly major: string
  readonly createClient: typeof createClient
  readonly createCluster: typeof createCluster
}[]

export interface Login {
  readonly username?: string | undefined
  readonly password?: string | undefined
}

/** The options of an app's client, under names that all libraries here translate. */
export interface ServerOptions extends Login {
  readonly host?: string
  readonly port: number
  readonly db?: number
  readonly name?: string
  readonly keyPrefix?: string
  readonly tls?: { readonly rejectUnauthorized?: boolean }
}

/** A library whose clients the package accepts. The clients made here do not connect. */
export interface RedisLibrary {
  readonly library: string
  connect(options: ServerOptions): RedisClientLike
  connectCluster(
    nodes: readonly { host: string; port: number }[],
    options?: Login & { readonly keyPrefix?: string },
  ): RedisClientLike
}

const IOREDIS: readonly RedisLibrary[] = ALL_MAJORS.map(
  ({ major, RedisOfRelease, ClusterOfRelease }) => ({
    library: major,
    connect: ({ name, ...options }) =>
      quiet(
        new RedisOfRelease({
          ...options,
          ...(name !== undefined && { connectionName: name }),
          lazyConnect: true,
        }),
      ),
    connectCluster: (nodes, { keyPrefix = '', ...login } = {}) =>
      quiet(
        new ClusterOfRelease([...nodes], {
          lazyConnect: true,
          keyPrefix,
          redisOptions: { ...login },
        }),
      ),
  }),
)

const NODE_REDIS_LIBRARIES: readonly RedisLibrary[] = NODE_REDIS.map(
  ({ major, createClient: create, createCluster: createForCluster }) => ({
    library: major,
    connect({ host = '127.0.0.1', port, db, tls, ...options }) {
      const socket = tls ? { host, port, tls: true as const, ...tls } : { host, port }
      const database = db === undefined ? {} : { database: db }
      return quiet(create({ ...options, ...database, socket } as RedisClientOptions))
    },
    connectCluster: (nodes, { keyPrefix = '', ...login } = {}) =>
      quiet(
        createForCluster({
          rootNodes: nodes.map((socket) => ({ socket })),
          keyPrefix,
          defaults: { ...login } as RedisClientOptions,
        } as RedisClusterOptions),
      ),
  }),
)

export const LIBRARIES: readonly RedisLibrary[] = [...IOREDIS, ...NODE_REDIS_LIBRARIES]

/** The libraries under test. */
export const CHOSEN_LIBRARIES = LIBRARIES.filter(({ library }) => isChosen(library))

/** The library that most tests use. */
export const LIBRARY = CHOSEN_LIBRARIES[0] as RedisLibrary
if (LIBRARY === undefined) throw new Error(`REDIS_CLIENT names no client: ${WANTED}`)

/** Adds a listener for errors, which the client would otherwise print or throw. */
function quiet<C extends { on(event: 'error', listener: () => void): unknown }>(client: C): C {
  client.on('error', () => {})
  return client
}

/** Disconnects the app's client, if it is connected. */
export function endClient(client: RedisClientLike): void {
  if ('isCluster' in client) (client as Redis).disconnect()
  else if (client.isOpen) client.destroy()
}

/** Replaces the login of the app's client. */
export function setLogin(client: RedisClientLike, login: Login): void {
  if (!('isCluster' in client)) {
    const { options, _options } = client as unknown as Record<'options' | '_options', object>
    Object.assign(options ?? (_options as { defaults: object }).defaults, login)
  } else if (client.isCluster) {
    const { options } = client as Cluster
    options.redisOptions = { ...options.redisOptions, ...login }
  } else Object.assign((client as Redis).options, login)
}
