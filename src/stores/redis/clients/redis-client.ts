/** `EVALSHA` or `EVAL`. */
export interface ScriptCommand {
  readonly command: 'evalsha' | 'eval'
  /** The digest, or the source. */
  readonly script: string
  /** Without the key prefix of the app's client, which the command gets. */
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  /** What texts in the reply become. */
  readonly texts: 'strings' | 'buffers'
}

/** A server that accepts commands without keys. */
export interface RedisNode {
  /** Host and port, or the path of the socket; with sentinels, the name of the master. */
  readonly address: string
  readonly isBehindSentinel: boolean
  /** Texts in the reply are strings. */
  command(...words: readonly string[]): Promise<unknown>
}

/**
 * What all clients of the package's own have. An error reply is an Error with the name `ReplyError`; any
 * other error means that the connection was lost or is not ready.
 */
export interface BaseClient {
  readonly database: number
  /** Whether it is connected and logged in. */
  isReady(): boolean
  /** Returns why it is not ready. */
  lastError(): Error | undefined
  /** Connects, unless it does already. Rejects if that fails. */
  connect(): Promise<void>
  /** Disconnects without waiting for the server. */
  close(): void
  runScript(command: ScriptCommand): Promise<unknown>
  /** Asks for the nodes that now accept writes. */
  masters(): Promise<readonly RedisNode[]>
  /** Whether the client has got no answer to its TLS handshake. `error` is why it is not ready. */
  isTlsUnanswered(error: Error | undefined): boolean
}

/** A client for one server. */
export interface ServerClient extends BaseClient, RedisNode {
  readonly isCluster: false
}

/** A client for all masters of a cluster. */
export interface ClusterClient extends BaseClient {
  readonly isCluster: true
  /** Returns the address of the master that has the key, as far as is known. */
  addressOf(key: string): string | undefined
  /** Returns what opens a client for the master at the address; `undefined` if there is none. */
  masterAt(address: string): OpenClient<ServerClient> | undefined
  /** Asks the cluster again for its nodes. */
  refresh(): void
  /** Calls `listener` with the address of a node that has left. */
  onNodeGone(listener: (address: string) => void): void
}

/** A client of the package's own, whichever library made it. */
export type OwnClient = ServerClient | ClusterClient

/** Of a client that reconnects until it is closed. */
export interface Reconnecting {
  /** Replaces the connection. */
  reconnect(): void
}

/** Callbacks of a client for its owner. */
export interface ClientListener {
  /** A connection is open; the login may follow. */
  connected?(): void
  ready?(): void
  /** The connection is lost, or could not be completed. */
  lost?(): void
}

/**
 * Opens a client that reconnects, once `connect` is called. By design, no reply is awaited for longer than
 * `longestReplyMs`.
 */
export type OpenClient<C> = (longestReplyMs: number, listener: ClientListener) => C & Reconnecting

/** Opens clients of the package's own with the options of the app's client. */
export interface ClientFactory {
  readonly keyPrefix: string
  readonly open: OpenClient<OwnClient>
  /**
   * Returns a function that opens the clients of a denylist. They do not reconnect: a new one replaces
   * each, so that the faulty state of a connection ends with it.
   */
  forDenylist(timeoutMs: number): () => OwnClient
}
