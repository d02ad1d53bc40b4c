import { setImmediate as endOfTick } from 'node:timers/promises'
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import {
  closedError,
  isLoginError,
  isReplyError,
  MAX_REDIRECTIONS,
  type Master,
  type OpenClient,
  type OpenOptions,
  type OwnClient,
  type OwnClients,
  type RedisNode,
} from './client.js'

/** A client of ioredis, or of iovalkey, which is a fork of it. */
export type Ioredis = Redis | Cluster

export function ioredisClients(caller: string, app: Ioredis): OwnClients {
  if (app.isCluster) {
    const open: OpenClient = (options) =>
      openIoredis(duplicateCluster(app as Cluster, options), options)
    return { open, isCluster: true, usesTls: false }
  }
  const { db = 0, sentinels, tls } = (app as Redis).options
  // For anything but a number, ioredis would use database 0.
  if (!/^\d+$/.test(String(db))) {
    throw new TypeError(`${caller}: the option db of redis must be the number of a database`)
  }
  let rotation = sentinels?.slice()
  const open: OpenClient = (options) => {
    // The sentinel that was asked first may hang, so the next client begins with another.
    rotation = rotation && [...rotation.slice(1), ...rotation.slice(0, 1)]
    const more = rotation === undefined ? {} : { sentinels: rotation }
    return openIoredis(duplicateServer(app as Redis, options, more), options)
  }
  return { open, isCluster: false, usesTls: Boolean(tls) }
}

/** The options of the app's client that would break the store's time limits, or the order of its commands. */
const serverOptions = ({ connectTimeoutMs }: OpenOptions) =>
  ({
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    // Without it, ioredis waits forever for a silent sentinel.
    sentinelCommandTimeout: connectTimeoutMs,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    reconnectOnError: null,
    // A server that hangs does not complete a graceful close.
    disconnectTimeout: 0,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    // Without it, a command may never settle.
    autoResendUnfulfilledCommands: true,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    socketTimeout: undefined,
    // Custom commands of the app's client must not replace those of the store.
    scripts: {},
    // If a connection closes before the reply to `CLIENT SETINFO`, ioredis 5 treats it as ready.
    disableClientInfo: true,
    connectionName: undefined,
    monitor: false,
    readOnly: false,
    role: 'master',
    stringNumbers: false,
    protocol: 2,
    replyMapping: 'legacy',
    himportFieldsets: undefined,
  }) as const

function duplicateServer(app: Redis, options: OpenOptions, more: RedisOptions): Redis {
  const { sentinels, connectionName } = app.options
  const redis = app.duplicate({
    ...serverOptions(options),
    // With sentinels, the ready check includes the role. Without them it would only add a delay,
    // because a server that is loading replies with an error.
    enableReadyCheck: Boolean(sentinels),
    // Sentinels announce a failover even while the old master still answers.
    failoverDetector: Boolean(sentinels),
    ...more,
  })
  // Ends a failover detector that was started while the connection was closing.
  if (sentinels) redis.on('close', () => redis.disconnect())
  // Sent once the login is done, because a user may lack the right.
  if (connectionName) {
    redis.on('ready', () => redis.client('SETNAME', connectionName).catch(() => {}))
  }
  return redis
}

const RETRY_DELAY_MS = 100

function duplicateCluster(app: Cluster, options: OpenOptions): Cluster {
  return app.duplicate([], {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    enableAutoPipelining: false,
    shardedSubscribers: false,
    scaleReads: 'master',
    // A refresh that ends after the client was closed would restart its timer forever.
    slotsRefreshInterval: undefined,
    // So that there is time to ask another node.
    slotsRefreshTimeout: options.connectTimeoutMs / 2,
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnMoved: 0,
    retryDelayOnFailover: RETRY_DELAY_MS,
    retryDelayOnClusterDown: RETRY_DELAY_MS,
    retryDelayOnTryAgain: RETRY_DELAY_MS,
    clusterRetryStrategy: () => null,
    // A lost node is not reconnected: the client queries the cluster for its nodes again.
    clusterNodeRetryStrategy: null,
    // Not every release of ioredis merges these with the password and TLS options of the app's client.
    redisOptions: {
      ...app.options.redisOptions,
      ...serverOptions(options),
      enableReadyCheck: false,
    },
  })
}

async function openIoredis(client: Ioredis, { signal, onLost }: OpenOptions): Promise<OwnClient> {
  let lastError: Error | undefined
  let isCorked = false

  /**
   * Until the turn of the event loop ends, so that all commands of the turn need one system call: without it, the two
   * scripts of a write cost 7 µs more. A pipeline of ioredis costs as much as it saves.
   */
  function corkForThisTurn(): void {
    const { stream } = client as Partial<Redis>
    if (isCorked || stream === undefined) return
    isCorked = true
    stream.cork()
    setImmediate(() => {
      isCorked = false
      stream.uncork()
    })
  }

  const close = (): void => client.disconnect()
  signal.addEventListener('abort', close, { once: true })
  // Without a listener, ioredis would print the errors.
  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    const { lastNodeError: cause = error } = error
    if (cause.message !== '') lastError = cause
  })
  client.on('end', () => onLost(lastError ?? closedError()))
  try {
    await client.connect()
    if (!client.isCluster) await confirmLogin(client as Redis)
    // ioredis 5 reports a refused login apart from the next command, which then runs as the default user.
    if (isReplyError(lastError)) throw lastError
  } catch (error) {
    close()
    throw lastError ?? error
  }

  return {
    async runScript({ script, keys, args, sendsSource }) {
      corkForThisTurn()
      const words = [keys.length, ...keys, ...args]
      return sendsSource
        ? client.callBuffer('eval', [script.source, ...words])
        : client.callBuffer('evalsha', [script.sha, ...words])
    },
    wait: async (replicas, timeoutMs) => (client as Redis).wait(replicas, timeoutMs),
    async masters() {
      const nodes = client.isCluster ? (client as Cluster).nodes('master') : [client as Redis]
      return nodes.map(ioredisNode)
    },
    close,
    masterOf: (slot) => (client.isCluster ? ioredisMaster(client as Cluster, slot) : undefined),
  }
}

const addressOf = ({ options }: Redis): string => `${options.host}:${options.port}`

function ioredisNode(redis: Redis): RedisNode {
  const { sentinels, name, path } = redis.options
  const isBehindSentinel = Boolean(sentinels)
  return {
    address: isBehindSentinel ? String(name) : (path ?? addressOf(redis)),
    isBehindSentinel,
    command: (command = '', ...words) => redis.call(command, words),
  }
}

function ioredisMaster(cluster: Cluster, slot: number): Master | undefined {
  const [address] = cluster.slots[slot] ?? []
  const node = cluster.nodes('master').find((each) => addressOf(each) === address)
  if (node === undefined || address === undefined) return undefined
  const open: OpenClient = (options) =>
    openIoredis(duplicateServer(node, options, { keyPrefix: '' }), options)
  return { address, open }
}

/**
 * Resolves once Redis has accepted the login and the database. ioredis 5 reports `ready` before that, and commands
 * sent meanwhile would run as the default user or in database 0.
 *
 * @throws Error with the reply of Redis, or because the connection was closed.
 */
async function confirmLogin(redis: Redis): Promise<void> {
  const { db = 0, password } = redis.options
  if (Number(db) === 0 && !password) return
  try {
    await (Number(db) === 0 ? redis.ping() : redis.select(db))
  } catch (error) {
    // Other error replies to PING, to a user without the right or while the server loads, prove the login.
    const isProof = Number(db) === 0 && isReplyError(error) && !isLoginError(error)
    if (!isProof) throw error
  } finally {
    // ioredis 5 emits the error of a login after it has settled the next command.
    await endOfTick()
  }
}
