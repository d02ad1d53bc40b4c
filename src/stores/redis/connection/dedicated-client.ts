import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis'

export type Client = Redis | Cluster

const MAX_RECONNECT_DELAY_MS = 500
/** A server may take this much longer to say something than anybody waits for it. */
const PATIENCE_MS = 1000
/** To open a connection, TLS included, may take longer than a reply. */
const CONNECT_PATIENCE_MS = 1500
const MAX_CONNECT_TIMEOUT_MS = 10_000
const LOADING_RETRY_MS = 500
const RETRY_DELAY_IN_CLUSTER_MS = 100
const MAX_REDIRECTIONS = 16

const reconnectDelay = (attempt: number): number =>
  Math.min(MAX_RECONNECT_DELAY_MS, 25 * 2 ** Math.min(attempt, 10))

/** After how long a connection on which nothing comes back is replaced. */
export const patienceOf = (longestReplyMs: number): number => longestReplyMs + PATIENCE_MS

const CREDENTIALS = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const

/**
 * Makes `options`, which a connection reads when it logs in, return what the user's client has at that
 * moment: short-lived passwords are replaced there while the process runs.
 */
function followCredentials(options: RedisOptions, usersNow: () => RedisOptions): void {
  for (const name of CREDENTIALS) {
    Object.defineProperty(options, name, { get: () => usersNow()[name], enumerable: true })
  }
}

/**
 * A cluster's client like `users`, whose nodes log in with what `redisOptions` of `users` have at that
 * moment, unless a startup node has credentials of its own.
 */
export function duplicateFollowing(
  users: Cluster,
  options: ClusterOptions,
  { from = users, nodes = [] }: { from?: Cluster; nodes?: ClusterNode[] } = {},
): Cluster {
  const { username, password } = users.options.redisOptions ?? {}
  const own = from.duplicate(nodes, {
    ...options,
    redisOptions: { ...options.redisOptions, username, password, replyMapping: 'legacy' },
  })
  own.on('+node', ({ options: node }: Redis) => {
    const isShared =
      (node.username ?? undefined) === username && (node.password ?? undefined) === password
    if (isShared) followCredentials(node, () => users.options.redisOptions ?? {})
  })
  return own
}

/**
 * A client of the store's own for the same server, with the user's options but for those that its
 * bounds and its order need otherwise. Nothing on it waits longer than `longestReplyMs` by intent.
 */
export function duplicateClient(users: Client, longestReplyMs: number): Client {
  return users.isCluster
    ? duplicateCluster(users as Cluster, longestReplyMs)
    : duplicateRedis(users as Redis, longestReplyMs)
}

/** `keyPrefix`: another than the client's, whose node in a cluster may lack it. */
export function duplicateRedis(users: Redis, longestReplyMs: number, keyPrefix?: string): Redis {
  const { connectionName } = users.options
  const own = users.duplicate({
    ...ownOptions(longestReplyMs),
    connectionName: undefined,
    // To a sentinel's client the check of the role belongs. Others would only wait longer with it:
    // a server that is loading says so itself.
    enableReadyCheck: Boolean(users.options.sentinels),
    ...(keyPrefix !== undefined && { keyPrefix }),
  })
  followCredentials(own.options, () => users.options)
  if (connectionName) {
    own.on('ready', () => own.client('SETNAME', connectionName).catch(() => {}))
  }
  return own
}

function duplicateCluster(users: Cluster, longestReplyMs: number): Cluster {
  return duplicateFollowing(users, {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    enableAutoPipelining: false,
    shardedSubscribers: false,
    // A refresh that ends after the client has been closed would set its timer again, forever.
    slotsRefreshInterval: undefined,
    scaleReads: 'master',
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnMoved: 0,
    retryDelayOnFailover: RETRY_DELAY_IN_CLUSTER_MS,
    retryDelayOnClusterDown: RETRY_DELAY_IN_CLUSTER_MS,
    retryDelayOnTryAgain: RETRY_DELAY_IN_CLUSTER_MS,
    clusterRetryStrategy: reconnectDelay,
    // A node that has gone is looked for in the cluster again.
    clusterNodeRetryStrategy: null,
    // Not every release of ioredis keeps the user's password and TLS beside these.
    redisOptions: {
      ...users.options.redisOptions,
      ...ownOptions(longestReplyMs),
      enableReadyCheck: false,
      // Nothing else tells which node is silent.
      socketTimeout: patienceOf(longestReplyMs),
    },
  })
}

function ownOptions(longestReplyMs: number) {
  const connectTimeout = Math.min(MAX_CONNECT_TIMEOUT_MS, longestReplyMs + CONNECT_PATIENCE_MS)
  return {
    lazyConnect: true,
    // Of our scripts' names, none may mean another.
    scripts: {},
    // A server that hangs does not answer a polite end.
    disconnectTimeout: 0,
    // When a connection is closed before these commands are answered, ioredis 5 takes it for ready and
    // never connects again. The same holds for a connection's name.
    disableClientInfo: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    // In ioredis 5 its timer outlives the connection, ends the next one and holds the process open:
    // stall-detector.ts takes its place.
    socketTimeout: undefined,
    connectTimeout,
    // Without it a sentinel that says nothing is waited for without end.
    sentinelCommandTimeout: connectTimeout,
    // With no retries nothing is left to be resent; without this a command may stay unsettled.
    autoResendUnfulfilledCommands: true,
    maxLoadingRetryTime: LOADING_RETRY_MS,
    monitor: false,
    readOnly: false,
    role: 'master',
    stringNumbers: false,
    protocol: 2,
    replyMapping: 'legacy',
    himportFieldsets: undefined,
    retryStrategy: reconnectDelay,
    sentinelRetryStrategy: reconnectDelay,
    // After a failover the address may lead to what has become a replica.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  } as const
}
