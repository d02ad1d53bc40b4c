import { openClusterConnection } from './node-redis-cluster.js'
import {
  type ConnectionSource,
  type NodeRedis,
  type NodeRedisOptions,
  openServerClient,
} from './node-redis-connection.js'
import type { ClusterSource } from './node-redis-topology.js'
import { reconnecting } from './reconnecting.js'
import type {
  ClientFactory,
  ClientListener,
  ClusterClient,
  OpenClient,
  Reconnecting,
  RedisNode,
  ServerClient,
} from './redis-client.js'
import { connectTimeoutFor, DENYLIST_CONNECT_TIMEOUT_MS, stallTimeoutFor } from './time-limits.js'

/** Opens clients of node-redis 5 or 6 for one server. */
export function nodeRedisFactory(appClient: NodeRedis): ClientFactory {
  const keyPrefix = String(appClient.options?.keyPrefix ?? '')
  /** Reads the options again for each connection, because the app may replace its password. */
  const sourceWithin = (connectTimeoutMs: number): ConnectionSource => ({
    address: nodeAddress(appClient.options),
    options: appClient.options ?? {},
    keyPrefix,
    connectTimeoutMs,
    start(options) {
      const client = appClient.duplicate(options)
      return { client, connecting: client.connect() }
    },
  })
  return {
    keyPrefix,
    open: openServer(sourceWithin),
    forDenylist: () => () => openServerClient(sourceWithin(DENYLIST_CONNECT_TIMEOUT_MS), {}),
  }
}

const openServer =
  (sourceWithin: (connectTimeoutMs: number) => ConnectionSource): OpenClient<ServerClient> =>
  (longestReplyMs, listener) => {
    const sourceNow = () => sourceWithin(connectTimeoutFor(longestReplyMs))
    const client = reconnecting((inner) => openServerClient(sourceNow(), inner), listener)
    const node: RedisNode = {
      address: sourceNow().address,
      isBehindSentinel: false,
      command: async (...words) => client.current().command(...words),
    }
    return { ...client, ...node, isCluster: false, masters: async () => [node] }
  }

const DEFAULT_PORT = 6379

function nodeAddress({ socket = {} }: NodeRedisOptions = {}): string {
  return socket.path ?? `${socket.host ?? 'localhost'}:${socket.port ?? DEFAULT_PORT}`
}

interface ClusterNode {
  readonly host: string | undefined
  readonly port: number | undefined
  readonly address: string
  readonly readonly: boolean
  /** Set by `nodeClient`. */
  client?: NodeRedis
}

type MappedAddress = { readonly host: string; readonly port: number } | undefined
type AddressMap = Readonly<Record<string, MappedAddress>> | ((address: string) => MappedAddress)

/** A cluster client of node-redis 5 or 6: what `createCluster` returns. */
export interface NodeRedisCluster {
  /** Declared, but not documented: nothing else says which nodes and credentials the app has given. */
  readonly _options: {
    readonly rootNodes: readonly NodeRedisOptions[]
    readonly defaults?: NodeRedisOptions | undefined
    readonly keyPrefix?: string | Buffer | undefined
    readonly nodeAddressMap?: AddressMap | undefined
  }
  duplicate(overrides: object): NodeRedisCluster
  nodeClient(node: ClusterNode): Promise<unknown>
}

/** Opens clients of node-redis 5 or 6 for a cluster. */
export function nodeRedisClusterFactory(appClient: NodeRedisCluster): ClientFactory {
  const keyPrefix = String(appClient._options.keyPrefix ?? '')
  const startNode = nodeStarter(appClient)
  /** The addresses of the last topology, which the next client starts with. */
  const known = new Set<string>()

  function nodeSource(address: string, connectTimeoutMs: number): ConnectionSource {
    const { defaults = {}, nodeAddressMap } = appClient._options
    const mapped =
      typeof nodeAddressMap === 'function' ? nodeAddressMap(address) : nodeAddressMap?.[address]
    const socket = { ...defaults.socket, ...(mapped ?? hostAndPort(address)) }
    const options = { ...defaults, socket }
    return { address, options, keyPrefix, connectTimeoutMs, start: startNode }
  }

  const sourceWithin = (connectTimeoutMs: number, longestReplyMs: number): ClusterSource => ({
    keyPrefix,
    known,
    connectTimeoutMs,
    stallTimeoutMs: stallTimeoutFor(longestReplyMs),
    roots() {
      const { defaults, rootNodes } = appClient._options
      return rootNodes.map((root) => {
        const options = rootOptions(root, defaults)
        const address = nodeAddress(options)
        return { address, options, keyPrefix, connectTimeoutMs, start: startNode }
      })
    },
    node: (address) => nodeSource(address, connectTimeoutMs),
    openNode: (address) => openServer((limit) => nodeSource(address, limit)),
  })

  return {
    keyPrefix,
    open(longestReplyMs, listener) {
      const source = sourceWithin(connectTimeoutFor(longestReplyMs), longestReplyMs)
      return reconnectingCluster(source, listener)
    },
    forDenylist(timeoutMs) {
      const source = sourceWithin(DENYLIST_CONNECT_TIMEOUT_MS, timeoutMs)
      return () => openClusterConnection(source, {})
    },
  }
}

function reconnectingCluster(
  source: ClusterSource,
  listener: ClientListener,
): ClusterClient & Reconnecting {
  const goneListeners: ((address: string) => void)[] = []
  const client = reconnecting((inner) => {
    const opened = openClusterConnection(source, inner)
    for (const onGone of goneListeners) opened.onNodeGone(onGone)
    return opened
  }, listener)
  const whileReady = <T>(use: (cluster: ClusterClient) => T): T | undefined =>
    client.isReady() ? use(client.current()) : undefined

  return {
    ...client,
    isCluster: true,
    addressOf: (key) => whileReady((cluster) => cluster.addressOf(key)),
    masterAt: (address) => whileReady((cluster) => cluster.masterAt(address)),
    refresh: () => whileReady((cluster) => cluster.refresh()),
    onNodeGone(onGone) {
      goneListeners.push(onGone)
    },
  }
}

/**
 * Applies the defaults of the cluster as node-redis does. If the options ask for TLS and the URL does not,
 * node-redis refuses to connect; this function chooses TLS, so that no login is sent in plain text.
 */
function rootOptions(root: NodeRedisOptions, defaults: NodeRedisOptions = {}): NodeRedisOptions {
  const { url, ...rest } = root
  const parsed = url === undefined ? undefined : optionsIn(new URL(url))
  const socket = { ...defaults.socket, ...rest.socket }
  const tls = socket.tls || parsed?.socket?.tls
  return {
    ...defaults,
    ...rest,
    ...parsed,
    socket: { ...socket, ...parsed?.socket, ...(tls !== undefined && { tls }) },
  }
}

function optionsIn({ hostname, port, protocol, username, password }: URL): NodeRedisOptions {
  return {
    socket: {
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? DEFAULT_PORT : Number(port),
      tls: protocol === 'rediss:',
    },
    // A login in the URL replaces the whole login of the defaults, even if it has only a password.
    ...((username !== '' || password !== '') && {
      credentialsProvider: undefined,
      username: decodeURIComponent(username) || undefined,
      password: decodeURIComponent(password) || undefined,
    }),
  }
}

function hostAndPort(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}

/**
 * Returns a function that makes clients for the nodes of a cluster, and lets them connect. Only `nodeClient` of a
 * cluster client does that, with the defaults of that client. Making a duplicate takes tens of milliseconds, so
 * all connections share one, whose defaults are replaced each time.
 */
function nodeStarter(appClient: NodeRedisCluster): ConnectionSource['start'] {
  const defaults: Record<string, unknown> = {}
  const cluster = appClient.duplicate({
    rootNodes: [],
    RESP: 2,
    clientSideCache: undefined,
    nodeAddressMap: undefined,
    defaults,
  })

  return (options) => {
    for (const name of Object.keys(defaults)) delete defaults[name]
    Object.assign(defaults, options)
    const { host, port } = options.socket ?? {}
    const node: ClusterNode = { host, port, address: '', readonly: false }
    const connecting = cluster.nodeClient(node)
    if (node.client === undefined) throw new Error('node-redis made no client for the node')
    return { client: node.client, connecting }
  }
}
