import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import {
  connectTimeoutFor,
  MAX_REDIRECTIONS,
  RETRY_DELAY_IN_CLUSTER_MS,
  reconnectDelay,
  stallTimeoutFor,
} from './time-limits.js'

/** A client of ioredis, or of iovalkey, which is a fork of it. */
export type Ioredis = Redis | Cluster

const LOADING_RETRY_MS = 500

const CREDENTIALS = ['username', 'password', 'sentinelUsername', 'sentinelPassword'] as const

/**
 * Makes the credentials in `options` follow those of the app's client. Connections read them at login,
 * and the app may replace short-lived passwords while the process runs.
 */
function followCredentials(options: RedisOptions, currentOptions: () => RedisOptions): void {
  for (const name of CREDENTIALS) {
    Object.defineProperty(options, name, { get: () => currentOptions()[name], enumerable: true })
  }
}

/**
 * Duplicates the cluster client `appClient`. The nodes of the copy log in with the credentials that
 * `redisOptions` of `appClient` holds at that time, unless a startup node has its own.
 */
export function duplicateClusterClient(
  appClient: Cluster,
  options: ClusterOptions,
  { from = appClient, nodes = [] }: { from?: Cluster; nodes?: ClusterNode[] } = {},
): Cluster {
  const { username, password } = appClient.options.redisOptions ?? {}
  const dedicated = from.duplicate(nodes, {
    ...options,
    redisOptions: { ...options.redisOptions, username, password, replyMapping: 'legacy' },
  })
  dedicated.on('+node', ({ options: node }: Redis) => {
    const isShared =
      (node.username ?? undefined) === username && (node.password ?? undefined) === password
    if (isShared) followCredentials(node, () => appClient.options.redisOptions ?? {})
  })
  return dedicated
}

/**
 * Creates a dedicated client for the same server. It has the options of the app's client, except those
 * that would break the store's time limits or the order of its commands. By design, no reply on it is
 * awaited for longer than `longestReplyMs`.
 */
export function duplicateClient(appClient: Ioredis, longestReplyMs: number): Ioredis {
  return appClient.isCluster
    ? duplicateCluster(appClient as Cluster, longestReplyMs)
    : duplicateRedis(appClient as Redis, longestReplyMs)
}

/** `keyPrefix` replaces that of the client: a node of a cluster may lack it. */
export function duplicateRedis(
  appClient: Redis,
  longestReplyMs: number,
  keyPrefix?: string,
): Redis {
  const { connectionName } = appClient.options
  const dedicated = appClient.duplicate({
    ...ownOptions(longestReplyMs),
    connectionName: undefined,
    // With sentinels, the ready check includes the role. Without them it would only add a delay,
    // because a server that is loading replies with an error.
    enableReadyCheck: Boolean(appClient.options.sentinels),
    ...(keyPrefix !== undefined && { keyPrefix }),
  })
  followCredentials(dedicated.options, () => appClient.options)
  if (connectionName) {
    dedicated.on('ready', () => dedicated.client('SETNAME', connectionName).catch(() => {}))
  }
  return dedicated
}

function duplicateCluster(appClient: Cluster, longestReplyMs: number): Cluster {
  return duplicateClusterClient(appClient, {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    enableAutoPipelining: false,
    shardedSubscribers: false,
    // A refresh that ends after the client was closed would set its timer again, forever.
    slotsRefreshInterval: undefined,
    scaleReads: 'master',
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnMoved: 0,
    retryDelayOnFailover: RETRY_DELAY_IN_CLUSTER_MS,
    retryDelayOnClusterDown: RETRY_DELAY_IN_CLUSTER_MS,
    retryDelayOnTryAgain: RETRY_DELAY_IN_CLUSTER_MS,
    clusterRetryStrategy: reconnectDelay,
    // If a node has gone, the cluster is queried for its nodes again.
    clusterNodeRetryStrategy: null,
    // Not every release of ioredis merges these with the password and TLS options of the app's client.
    redisOptions: {
      ...appClient.options.redisOptions,
      ...ownOptions(longestReplyMs),
      enableReadyCheck: false,
      // Nothing else shows which node is silent.
      socketTimeout: stallTimeoutFor(longestReplyMs),
    },
  })
}

function ownOptions(longestReplyMs: number) {
  const connectTimeout = connectTimeoutFor(longestReplyMs)
  return {
    lazyConnect: true,
    // Custom commands of the app's client must not replace those of the store.
    scripts: {},
    // A server that hangs does not complete a graceful close.
    disconnectTimeout: 0,
    // If a connection is closed before the replies to these commands, ioredis 5 treats it as ready and
    // never reconnects. The same applies to `connectionName`.
    disableClientInfo: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    // In ioredis 5 its timer outlives the connection, closes the next one and holds the process open.
    // stall-detector.ts replaces it.
    socketTimeout: undefined,
    connectTimeout,
    // Without it, ioredis waits forever for a silent sentinel.
    sentinelCommandTimeout: connectTimeout,
    // Without retries nothing is ever resent, but without this option a command may never settle.
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
    // After a failover, the server at this address may have become a replica.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  } as const
}
