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
 * Duplicates the cluster client `appClient`, or its duplicate `template`. The nodes of the result log in with the
 * credentials that `redisOptions` of `appClient` has at the time of the login, unless a startup node has others.
 */
export function duplicateClusterClient(
  appClient: Cluster,
  options: ClusterOptions,
  { template = appClient, nodes = [] }: { template?: Cluster; nodes?: ClusterNode[] } = {},
): Cluster {
  const { username, password } = appClient.options.redisOptions ?? {}
  const dedicated = template.duplicate(nodes, {
    ...options,
    redisOptions: { ...options.redisOptions, username, password, replyMapping: 'legacy' },
  })
  dedicated.on('+node', ({ options: node }: Redis) => {
    const hasAppLogin =
      (node.username ?? undefined) === username && (node.password ?? undefined) === password
    if (hasAppLogin) followCredentials(node, () => appClient.options.redisOptions ?? {})
  })
  return dedicated
}

/**
 * Creates a dedicated client for the server of `appClient`, with its options except those that would break the
 * store's time limits or the order of its commands. The store waits for no reply longer than `longestReplyMs`.
 */
export function duplicateClient(appClient: Ioredis, longestReplyMs: number): Ioredis {
  return appClient.isCluster
    ? duplicateCluster(appClient as Cluster, longestReplyMs)
    : duplicateRedis(appClient as Redis, longestReplyMs)
}

/** `keyPrefix` replaces that of `appClient`: the client of a cluster node may lack the prefix of the cluster. */
export function duplicateRedis(
  appClient: Redis,
  longestReplyMs: number,
  keyPrefix?: string,
): Redis {
  const { connectionName } = appClient.options
  const dedicated = appClient.duplicate({
    ...dedicatedOptions(longestReplyMs),
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
    // A refresh that ends after the client was closed would restart its timer forever.
    slotsRefreshInterval: undefined,
    scaleReads: 'master',
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnMoved: 0,
    retryDelayOnFailover: RETRY_DELAY_IN_CLUSTER_MS,
    retryDelayOnClusterDown: RETRY_DELAY_IN_CLUSTER_MS,
    retryDelayOnTryAgain: RETRY_DELAY_IN_CLUSTER_MS,
    clusterRetryStrategy: reconnectDelay,
    // A lost node is not reconnected: the client queries the cluster for its nodes again.
    clusterNodeRetryStrategy: null,
    // Not every release of ioredis merges these with the password and TLS options of the app's client.
    redisOptions: {
      ...appClient.options.redisOptions,
      ...dedicatedOptions(longestReplyMs),
      enableReadyCheck: false,
      // In a cluster, only the timeout of its socket shows which node is silent.
      socketTimeout: stallTimeoutFor(longestReplyMs),
    },
  })
}

function dedicatedOptions(longestReplyMs: number) {
  const connectTimeout = connectTimeoutFor(longestReplyMs)
  return {
    lazyConnect: true,
    // Custom commands of the app's client must not replace those of the store.
    scripts: {},
    // A server that hangs does not complete a graceful close.
    disconnectTimeout: 0,
    // If a connection closes before the reply to `CLIENT SETINFO` or, for `connectionName`, `CLIENT SETNAME`,
    // ioredis 5 treats it as ready and never reconnects.
    disableClientInfo: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    // In ioredis 5 the timer of this option outlives the connection, closes the next one and holds the process
    // open. stall-detector.ts takes its place.
    socketTimeout: undefined,
    connectTimeout,
    // Without it, ioredis waits forever for a silent sentinel.
    sentinelCommandTimeout: connectTimeout,
    // `maxRetriesPerRequest: 0` prevents resending; but without this option a command may never settle.
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
