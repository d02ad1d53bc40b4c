import type { RedisClusterType } from 'redis'
import {
  closedError,
  isReplyError,
  MAX_REDIRECTIONS,
  type OpenOptions,
  type OwnClient,
  type RedisCall,
  script,
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

export function openNodeRedis(
  source: () => NodeRedis | Promise<NodeRedis>,
  { connectTimeoutMs, onLost }: OpenOptions,
): OwnClient {
  const aborter = new AbortController()
  let client: NodeRedis | undefined
  let scripts: NodeRedisScripts | undefined
  let lastError: Error | undefined
  let isEnded = false

  function end(): void {
    isEnded = true
    try {
      client?.destroy()
    } catch {
      // node-redis 5 throws if the client has ended already.
    }
    // Also cancels a pending connection attempt, which `destroy` does not.
    aborter.abort()
  }

  function fail(error: Error): void {
    if (isEnded) return
    lastError = asReplyError(error)
    end()
    onLost(lastError)
  }

  const reconnectStrategy = (_retries: number, cause: Error): false => {
    fail(cause)
    return false
  }

  async function connect(): Promise<void> {
    const app = await source()
    const { options = {} } = app
    const { signal } = aborter
    const socket = { connectTimeout: connectTimeoutMs, signal, reconnectStrategy }
    if (isEnded) throw closedError()
    client = app.duplicate(nodeRedisOptions(options, socket))
    client.on('error', fail)
    await client.connect().catch(fail)
    if (isEnded) throw lastError ?? closedError()
    scripts = client.withCommandOptions(BUFFERS)
    if (options.name) node.command('CLIENT', 'SETNAME', options.name).catch(() => {})
  }

  const node = {
    get address() {
      const socket: SocketAddress = client?.options?.socket ?? {}
      const { path, host = 'localhost', port = 6379 } = socket
      return path ?? `${host}:${port}`
    },
    isBehindSentinel: false,
    async command(...words: readonly string[]) {
      if (client === undefined || isEnded) throw closedError()
      return sendOn(client, words)
    },
  }
  return {
    connect,
    async runScript(call) {
      if (scripts === undefined || isEnded) throw closedError()
      return runOn(scripts, call)
    },
    async wait(replicas, timeoutMs) {
      if (scripts === undefined || isEnded) throw closedError()
      return scripts.wait(replicas, timeoutMs).catch(throwReplyError)
    },
    masters: async () => [node],
    close: end,
  }
}

const RETURN_KEY = { script: script('return KEYS[1]'), args: [], sendsSource: true }
const KEY_TIMEOUT_MS = 1000

/** After this time without a node, node-redis 6 asks the others where its slots are. */
const TOPOLOGY_REFRESH_MS = 250

/** The nodes reconnect as the app's `defaults` say: no other option of them can be known. */
export function openNodeRedisCluster(app: NodeRedisCluster): OwnClient {
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
  let lastError: Error | undefined
  cluster.on('error', (error) => (lastError = asReplyError(error)))

  function runScript(call: RedisCall, timeoutMs: number): Promise<unknown> {
    // A node that is reconnecting keeps commands in a queue.
    const abortSignal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)))
    return runOn(cluster.withCommandOptions({ ...BUFFERS, abortSignal }), call)
  }

  return {
    async connect() {
      await cluster.connect().catch((error) => {
        throw lastError ?? error
      })
    },
    runScript,
    wait: () => Promise.reject(new TypeError('a cluster has no WAIT of its own')),
    masters: async () =>
      cluster.masters.map((master) => ({
        address: master.address,
        isBehindSentinel: false,
        command: async (...words) => sendOn(await cluster.nodeClient(master), words),
      })),
    close() {
      try {
        cluster.destroy()
      } catch {
        // node-redis 5 throws if one of its nodes has ended already.
      }
    },
    cluster: {
      // Only the server tells what the library puts before a key.
      async keyPrefix(key) {
        const prefixed = String(await runScript({ ...RETURN_KEY, keys: [key] }, KEY_TIMEOUT_MS))
        return prefixed.slice(0, -key.length)
      },
      masterOf(slot) {
        const master = cluster.slots[slot]?.master
        if (master === undefined) return undefined
        const { address } = master
        return {
          address,
          open: (options) => openNodeRedis(() => cluster.nodeClient(master), options),
        }
      },
    },
  }
}
