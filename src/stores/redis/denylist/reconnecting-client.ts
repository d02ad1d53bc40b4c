import type { Cluster, ClusterNode, Redis, SentinelAddress } from 'ioredis'
import { type Client, duplicateClient, duplicateFollowing } from '../connection/dedicated-client.js'

/** To connect, the handshake and the question to a sentinel or to a node of a cluster included. */
export const CONNECT_TIMEOUT_MS = 250

/**
 * Makes a client for each connection of a denylist. None connects again by itself: the next is made
 * in its place, so that what a connection has got into ends with it.
 */
export interface ClientMaker {
  make(): Client
  /** Tells of the client that it has connected, so that the next knows where to look. */
  note(client: Client): void
}

export function createClientMaker(users: Client, timeoutMs: number): ClientMaker {
  const template = duplicateClient(users, timeoutMs)
  const { make, note } = template.isCluster
    ? clusterMaker(template as Cluster, users as Cluster)
    : redisMaker(template as Redis, users.options as Redis['options'])
  return {
    note,
    make() {
      const client = make()
      // Faults reach whoever asks; without a listener they would be printed.
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

function redisMaker(
  template: Redis,
  { connectionName }: Pick<Redis['options'], 'connectionName'>,
): ClientMaker {
  let sentinels: Partial<SentinelAddress>[] | undefined = template.options.sentinels?.slice()

  return {
    make() {
      const client = template.duplicate({
        ...CONNECTION_OPTIONS,
        // Sentinels tell of a failover while the old master may still answer.
        ...(sentinels !== undefined && { sentinels, failoverDetector: true }),
      })
      // The first one asked may be the one that hangs.
      sentinels = sentinels && [...sentinels.slice(1), ...sentinels.slice(0, 1)]
      // A detector that began while the connection was being ended would stay.
      if (sentinels !== undefined) client.on('close', () => client.disconnect())
      if (connectionName) {
        client.on('ready', () => client.client('SETNAME', connectionName).catch(() => {}))
      }
      return client
    },
    note: () => {},
  }
}

function clusterMaker(template: Cluster, users: Cluster): ClientMaker {
  let known: ClusterNode[] = []
  let isByKnown = false

  return {
    make() {
      // The nodes last seen may all have gone; those that the user named may be none of them any more.
      isByKnown = !isByKnown
      const options = {
        slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
        enableReadyCheck: false,
        clusterRetryStrategy: () => null,
        redisOptions: {
          ...template.options.redisOptions,
          ...CONNECTION_OPTIONS,
          // Who asks is no more patient, and ends the connection.
          socketTimeout: undefined,
        },
      } as const
      return duplicateFollowing(users, options, { from: template, nodes: isByKnown ? known : [] })
    },
    note(client) {
      known = (client as Cluster).nodes().map(({ options: { host, port } }) => ({ host, port }))
    },
  }
}
