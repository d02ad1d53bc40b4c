import { isReplyError, NotConfirmed } from '../connection/redis-call.js'
import { notConnectedError } from './reconnecting.js'
import type { ClientListener, ServerClient } from './redis-client.js'

/** A client of node-redis 5 or 6: what `createClient` returns. */
export interface NodeRedis {
  readonly options?: NodeRedisOptions
  duplicate(overrides: object): NodeRedis
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: () => void): unknown
  sendCommand(words: readonly (string | Buffer)[], options: object): Promise<unknown>
}

/** Options of node-redis that matter here. */
export interface NodeRedisOptions {
  readonly url?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** Made of `username` and `password` by default; called at each login. */
  readonly credentialsProvider?: unknown
  readonly database?: number | undefined
  readonly name?: string | undefined
  readonly keyPrefix?: string | Buffer | undefined
  readonly socket?:
    | {
        readonly host?: string | undefined
        readonly port?: number | undefined
        readonly path?: string | undefined
        readonly tls?: boolean | undefined
      }
    | undefined
}

/** How to open one connection. */
export interface ConnectionSource {
  /** The address for messages. */
  readonly address: string
  /** The options of the app's client for this connection. */
  readonly options: NodeRedisOptions
  readonly keyPrefix: string
  readonly connectTimeoutMs: number
  /** Makes a client with these options, and lets it connect. */
  start(options: NodeRedisOptions): {
    readonly client: NodeRedis
    readonly connecting: Promise<unknown>
  }
}

/** Values of `RESP_TYPES` of node-redis. */
const SIMPLE_STRING = 43
const BLOB_STRING = 36

const COMMAND_OPTIONS = {
  strings: { timeout: undefined, typeMapping: {} },
  buffers: {
    timeout: undefined,
    typeMapping: { [SIMPLE_STRING]: Buffer, [BLOB_STRING]: Buffer },
  },
} as const

/**
 * Opens one connection with node-redis that never reconnects: a node-redis client that reconnects may connect twice
 * at a time, and resend commands. Uses the options of the app's client, except those that would break the
 * store's time limits or the order of its commands.
 */
export function openServerClient(source: ConnectionSource, listener: ClientListener): ServerClient {
  const { address, options, keyPrefix } = source
  const aborter = new AbortController()
  let client: NodeRedis | undefined
  let isReady = false
  let isEnded = false
  let lastError: Error | undefined

  function end(): void {
    isEnded = true
    isReady = false
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
    listener.lost?.()
  }

  function dedicatedOptions(): object {
    return {
      ...options,
      // The other options have the parts of the URL.
      url: undefined,
      socket: {
        ...options.socket,
        connectTimeout: source.connectTimeoutMs,
        socketTimeout: undefined,
        signal: aborter.signal,
        reconnectStrategy(_retries: number, cause: Error) {
          fail(cause)
          return false
        },
      },
      RESP: 2,
      // A user without the right to CLIENT SETNAME could not log in, so `connect` sends it afterwards.
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
    }
  }

  async function connect(): Promise<void> {
    const started = source.start(dedicatedOptions())
    client = started.client
    client.on('error', fail)
    client.on('connect', () => listener.connected?.())
    try {
      await started.connecting
    } catch (error) {
      fail(error as Error)
    }
    if (isEnded) throw lastError ?? notConnectedError()
    isReady = true
    if (options.name) send(['CLIENT', 'SETNAME', options.name], 'strings').catch(() => {})
    listener.ready?.()
  }

  async function send(
    words: readonly (string | Buffer)[],
    texts: keyof typeof COMMAND_OPTIONS,
  ): Promise<unknown> {
    if (client === undefined || !isReady) throw notConnectedError()
    try {
      return await client.sendCommand(words, COMMAND_OPTIONS[texts])
    } catch (error) {
      const cause = asReplyError(error as Error)
      // After a failover, the server at this address may have become a replica.
      if (isReplyError(cause) && cause.message.startsWith('READONLY')) fail(cause)
      throw cause
    }
  }

  const node = {
    address,
    isBehindSentinel: false,
    command: (...words: readonly string[]) => send(words, 'strings'),
  }
  return {
    ...node,
    isCluster: false,
    database: options.database ?? 0,
    isReady: () => isReady,
    lastError: () => lastError,
    connect,
    close() {
      if (!isEnded) end()
    },
    runScript({ command, script, keys, args, texts }) {
      const prefixed = keyPrefix === '' ? keys : keys.map((key) => keyPrefix + key)
      return send([command, script, String(keys.length), ...prefixed, ...args], texts)
    },
    masters: async () => [node],
    isTlsUnanswered(error) {
      const isWaiting =
        error === undefined || error instanceof NotConfirmed || error.message === TIMEOUT_MESSAGE
      return options.socket?.tls === true && !isReady && isWaiting
    },
  }
}

/** The message of node-redis for a connection that was not opened in time. */
const TIMEOUT_MESSAGE = 'Connection timeout'

/** Error replies begin with a word in capitals; errors of Node and node-redis do not. */
const REPLY_ERROR = /^[A-Z][A-Z\d]+ /

function asReplyError(error: Error): Error {
  if (isReplyError(error) || !REPLY_ERROR.test(error.message)) return error
  const replyError = new Error(error.message)
  replyError.name = 'ReplyError'
  return replyError
}
