import type { RedisClusterType } from 'redis'
import {
  isReplyError,
  MAX_REDIRECTIONS,
  type OpenOptions,
  type OwnClient,
  type RedisCall,
  type RedisNode,
} from './client.js'

/** A cluster client of node-redis 5 or 6, with the types of 6: what `createCluster` returns. */
export type NodeRedisCluster = RedisClusterType
/** A client of one server: what `createClient` returns. */
export type NodeRedis = Awaited<ReturnType<NodeRedisCluster['nodeClient']>>
type NodeRedisScripts = Pick<NodeRedis, 'eval' | 'evalSha' | 'wait'>

interface SocketAddress {
  readonly path?: string | undefined
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** Values of `RESP_TYPES` of node-redis. */
const SIMPLE_STRING = 43
const BLOB_STRING = 36

const STRINGS = { typeMapping: {} }
const BUFFERS = { typeMapping: { [SIMPLE_STRING]: Buffer, [BLOB_STRING]: Buffer } }

function runOn(
  client: NodeRedisScripts,
  { script, keys, args, sendsSource }: RedisCall,
): Promise<unknown> {
  const options = { keys: [...keys], arguments: [...args] }
  const reply = sendsSource
    ? client.eval(script.source, options)
    : client.evalSha(script.sha, options)
  return reply.catch(throwReplyError)
}

/** Sends a command without keys. The strings in the reply are JavaScript strings. */
const sendOn = (client: NodeRedis, words: readonly string[]): Promise<unknown> =>
  client.withCommandOptions(STRINGS).sendCommand(words).catch(throwReplyError)

/** Error replies begin with a word in capitals; errors of Node and node-redis do not. */
const REPLY_ERROR = /^[A-Z][A-Z\d]+ /

function asReplyError(error: Error): Error {
  if (isReplyError(error) || !REPLY_ERROR.test(error.message)) return error
  const replyError = new Error(error.message)
  replyError.name = 'ReplyError'
  return replyError
}

function throwReplyError(error: Error): never {
  throw asReplyError(error)
}

/** The options of the app's client that would break the store's time limits, or the order of its commands. */
const nodeRedisOptions = (options: NonNullable<NodeRedis['options']>, socket: object): object => ({
  // The other options have the parts of the URL.
  url: undefined,
  socket: { ...options.socket, socketTimeout: undefined, ...socket },
  RESP: 2,
  // Sent once the login is done, because a user may lack the right.
  name: undefined,
  disableClientInfo: true,
  disableOfflineQueue: true,
  commandsQueueMaxLength: undefined,
  // May hold an abort signal of the app.
  commandOptions: undefined,
  readonly: false,
  pingInterval: undefined,
  // These need RESP 3.
  clientSideCache: undefined,
  emitInvalidate: undefined,
  maintNotifications: 'disabled',
})

export async function openNodeRedis(
  app: NodeRedis,
  { connectTimeoutMs, signal, onLost }: OpenOptions,
): Promise<OwnClient> {
  const { options = {} } = app
  // The signal also cancels a pending connection attempt, which `destroy` does not.
  const socket = { connectTimeout: connectTimeoutMs, signal, reconnectStrategy: false }
  const client = app.duplicate(nodeRedisOptions(options, socket))
  // node-redis 5 fails to connect with an error of its own if the client is destroyed meanwhile.
  let firstError: Error | undefined
  client.on('error', (error) => {
    firstError ??= asReplyError(error)
    destroy(client)
    onLost(firstError)
  })
  try {
    await client.connect()
  } catch (error) {
    destroy(client)
    throw firstError ?? asReplyError(error as Error)
  }
  if (options.name) sendOn(client, ['CLIENT', 'SETNAME', options.name]).catch(() => {})
  const scripts = client.withCommandOptions(BUFFERS)
  const { path, host = 'localhost', port = 6379 }: SocketAddress = client.options?.socket ?? {}
  const node: RedisNode = {
    address: path ?? `${host}:${port}`,
    isBehindSentinel: false,
    command: (...words) => sendOn(client, words),
  }
  return {
    runScript: (call) => runOn(scripts, call),
    wait: (replicas, timeoutMs) => scripts.wait(replicas, timeoutMs).catch(throwReplyError),
    masters: async () => [node],
    close: () => destroy(client),
  }
}

function destroy(client: Pick<NodeRedis, 'destroy'>): void {
  try {
    client.destroy()
  } catch {
    // node-redis 5 throws if the client, or a node of a cluster, has ended already.
  }
}

/** After this time without a node, node-redis 6 asks the others where its slots are. */
const TOPOLOGY_REFRESH_MS = 250

/** The nodes reconnect as the app's `defaults` say: no other option of them can be known. */
export async function openNodeRedisCluster(
  app: NodeRedisCluster,
  { signal }: OpenOptions,
): Promise<OwnClient> {
  const options: object = {
    RESP: 2,
    commandOptions: undefined,
    clientSideCache: undefined,
    useReplicas: false,
    // Otherwise one node that is down would keep the client from connecting.
    minimizeConnections: true,
    maxCommandRedirections: MAX_REDIRECTIONS,
    topologyRefreshOnReconnectionAttemptStrategy: TOPOLOGY_REFRESH_MS,
  }
  const cluster = app.duplicate(options)
  const close = (): void => destroy(cluster)
  let lastError: Error | undefined
  cluster.on('error', (error) => (lastError = asReplyError(error)))
  signal.addEventListener('abort', close, { once: true })
  try {
    await cluster.connect()
  } catch (error) {
    close()
    throw lastError ?? error
  }

  return {
    runScript(call, timeoutMs) {
      // A node that is reconnecting keeps commands in a queue.
      const abortSignal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)))
      return runOn(cluster.withCommandOptions({ ...BUFFERS, abortSignal }), call)
    },
    wait: () => Promise.reject(new TypeError('a cluster has no WAIT of its own')),
    masters: async () =>
      cluster.masters.map((master) => ({
        address: master.address,
        isBehindSentinel: false,
        command: async (...words) => sendOn(await cluster.nodeClient(master), words),
      })),
    close,
    masterOf(slot) {
      const master = cluster.slots[slot]?.master
      if (master === undefined) return undefined
      const { address } = master
      return {
        address,
        open: async (options) => openNodeRedis(await cluster.nodeClient(master), options),
      }
    },
  }
}
