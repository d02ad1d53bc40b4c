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

/** The name of a library below, with which alone the tests are to run. */
const WANTED = process.env['REDIS_CLIENT']
/** Without it, most tests run with the first of these, and those of all majors with both. */
const USUAL = ['ioredis 6', 'ioredis 5']
const isChosen = (name: string): boolean =>
  WANTED === undefined ? USUAL.includes(name) : name === WANTED

/** The releases of ioredis and iovalkey that the package works with, under the types of ioredis 6. */
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
/** Those under test. Never empty: what is special to ioredis is always tested. */
export const MAJORS = chosenMajors.length > 0 ? chosenMajors : ALL_MAJORS.slice(0, 1)

/** The releases of node-redis that the package works with, under the types of node-redis 6. */
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

/** What an app tells its client, whatever its library calls it. */
export interface ServerOptions extends Login {
  readonly host?: string
  readonly port: number
  readonly db?: number
  readonly name?: string
  readonly keyPrefix?: string
  readonly tls?: { readonly rejectUnauthorized?: boolean }
}

/** A library whose clients the package takes. None of these clients connects by itself. */
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

/** Those under test. */
export const CHOSEN_LIBRARIES = LIBRARIES.filter(({ library }) => isChosen(library))

export const OTHER_LIBRARIES = LIBRARIES.filter((each) => !CHOSEN_LIBRARIES.includes(each))

/** The one that most tests use. */
export const LIBRARY = CHOSEN_LIBRARIES[0] as RedisLibrary
if (LIBRARY === undefined) throw new Error(`REDIS_CLIENT names no client: ${WANTED}`)

/** Without a listener, a client prints errors or throws them. */
function quiet<C extends { on(event: 'error', listener: () => void): unknown }>(client: C): C {
  client.on('error', () => {})
  return client
}

/** Ends the user's client, if it has connected. */
export function endClient(client: RedisClientLike): void {
  if ('isCluster' in client) (client as Redis).disconnect()
  else if (client.isOpen) client.destroy()
}

/** Replaces the login of the user's client. */
export function setLogin(client: RedisClientLike, login: Login): void {
  if (!('isCluster' in client)) {
    const { options, _options } = client as unknown as Record<'options' | '_options', object>
    Object.assign(options ?? (_options as { defaults: object }).defaults, login)
  } else if (client.isCluster) {
    const { options } = client as Cluster
    options.redisOptions = { ...options.redisOptions, ...login }
  } else Object.assign((client as Redis).options, login)
}
