import type { Cluster, ClusterNode, Redis, SentinelAddress } from 'ioredis'
import {
  type Client,
  duplicateClient,
  duplicateClusterClient,
} from '../connection/dedicated-client.js'

/** The time limit to connect, including handshake and the query of a sentinel or cluster node. */
export const CONNECT_TIMEOUT_MS = 250

/**
 * Creates a client for each connection of a denylist. No client reconnects: a new one replaces it, so
 * that the faulty state of a connection ends with it.
 */
export interface ClientFactory {
  create(): Client
  /** Records a client that has connected, so that the next client can use the nodes it knows. */
  recordNodes(client: Client): void
}

export function createClientFactory(appClient: Client, timeoutMs: number): ClientFactory {
  const template = duplicateClient(appClient, timeoutMs)
  const { create, recordNodes } = template.isCluster
    ? clusterFactory(template as Cluster, appClient as Cluster)
    : redisFactory(template as Redis, appClient.options as Redis['options'])
  return {
    recordNodes,
    create() {
      const client = create()
      // Callers get the errors; without a listener, ioredis would print them.
      client.on('error', () => {})
      return client
    },
  }
}

const CONNECTION_OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  reconnectOnError: null,
} as const

function redisFactory(
  template: Redis,
  { connectionName }: Pick<Redis['options'], 'connectionName'>,
): ClientFactory {
  let sentinels: Partial<SentinelAddress>[] | undefined = template.options.sentinels?.slice()

  return {
    create() {
      const client = template.duplicate({
        ...CONNECTION_OPTIONS,
        // Sentinels publish a failover while the old master may still answer.
        ...(sentinels !== undefined && { sentinels, failoverDetector: true }),
      })
      // The sentinel that was queried first may hang, so the next client begins with another.
      sentinels = sentinels && [...sentinels.slice(1), ...sentinels.slice(0, 1)]
      // A detector that was started while the connection was closing would stay open.
      if (sentinels !== undefined) client.on('close', () => client.disconnect())
      if (connectionName) {
        client.on('ready', () => client.client('SETNAME', connectionName).catch(() => {}))
      }
      return client
    },
    recordNodes: () => {},
  }
}

function clusterFactory(template: Cluster, appClient: Cluster): ClientFactory {
  let knownNodes: ClusterNode[] = []
  let usesKnownNodes = false

  return {
    create() {
      // Alternates: the last known nodes, or the configured ones, may all have left the cluster.
      usesKnownNodes = !usesKnownNodes
      const options = {
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        enableReadyCheck: false,
        clusterRetryStrategy: () => null,
        redisOptions: {
          ...template.options.redisOptions,
          ...CONNECTION_OPTIONS,
          // Callers do not wait for longer, and close the connection.
          socketTimeout: undefined,
        },
      } as const
      return duplicateClusterClient(appClient, options, {
        from: template,
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
