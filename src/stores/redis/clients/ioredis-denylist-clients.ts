import type { Cluster, ClusterNode, Redis, SentinelAddress } from 'ioredis'
import { duplicateClient, duplicateClusterClient, type Ioredis } from './ioredis-duplicates.js'
import { DENYLIST_CONNECT_TIMEOUT_MS as CONNECT_TIMEOUT_MS } from './time-limits.js'

/** Creates a client for each connection of a denylist. No client reconnects. */
interface DenylistClients {
  create(): Ioredis
  /** Records a client that has connected, so that the next client can use the nodes it knows. */
  recordNodes(client: Ioredis): void
}

export function denylistClients(appClient: Ioredis, timeoutMs: number): DenylistClients {
  const template = duplicateClient(appClient, timeoutMs)
  return template.isCluster
    ? clusterClients(template as Cluster, appClient as Cluster)
    : redisClients(template as Redis, appClient.options as Redis['options'])
}

const CONNECTION_OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  reconnectOnError: null,
} as const

function redisClients(
  template: Redis,
  { connectionName }: Pick<Redis['options'], 'connectionName'>,
): DenylistClients {
  let sentinels: Partial<SentinelAddress>[] | undefined = template.options.sentinels?.slice()

  return {
    create() {
      const client = template.duplicate({
        ...CONNECTION_OPTIONS,
        // Sentinels announce a failover even while the old master still answers.
        ...(sentinels !== undefined && { sentinels, failoverDetector: true }),
      })
      // The sentinel that was queried first may hang, so the next client begins with another.
      sentinels = sentinels && [...sentinels.slice(1), ...sentinels.slice(0, 1)]
      // Ends a failover detector that was started while the connection was closing.
      if (sentinels !== undefined) client.on('close', () => client.disconnect())
      if (connectionName) {
        client.on('ready', () => client.client('SETNAME', connectionName).catch(() => {}))
      }
      return client
    },
    recordNodes: () => {},
  }
}

function clusterClients(template: Cluster, appClient: Cluster): DenylistClients {
  let knownNodes: ClusterNode[] = []
  let usesKnownNodes = false

  return {
    create() {
      // Alternates, because all of the last known nodes, or all of the configured ones, may have left.
      usesKnownNodes = !usesKnownNodes
      const options = {
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        enableReadyCheck: false,
        clusterRetryStrategy: () => null,
        redisOptions: {
          ...template.options.redisOptions,
          ...CONNECTION_OPTIONS,
          // Not needed: a caller that times out closes the connection.
          socketTimeout: undefined,
        },
      } as const
      return duplicateClusterClient(appClient, options, {
        template,
        nodes: usesKnownNodes ? knownNodes : [],
      })
    },
    recordNodes(client) {
      knownNodes = (client as Cluster)
        .nodes()
        .map(({ options: { host, port } }) => ({ host, port }))
    },
  }
}
