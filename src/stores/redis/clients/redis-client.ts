/** `EVALSHA` or `EVAL`. */
export interface ScriptCommand {
  readonly command: 'evalsha' | 'eval'
  /** The digest for `EVALSHA`, the source for `EVAL`. */
  readonly script: string
  /** Without the key prefix of the app's client, which `runScript` adds. */
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  /** What each string of the reply becomes in JavaScript. */
  readonly texts: 'strings' | 'buffers'
}

/** One server, for commands that have no keys. */
export interface RedisNode {
  /** Host and port, or the path of the socket; with sentinels, the name of the master. */
  readonly address: string
  readonly isBehindSentinel: boolean
  /** Resolves with the reply, whose strings are JavaScript strings, not Buffers. */
  command(...words: readonly string[]): Promise<unknown>
}

/**
 * What all clients have that the package opens. An error reply is an Error with the name `ReplyError`; any
 * other error means that the connection was lost or is not ready.
 */
export interface BaseClient {
  readonly database: number
  /** Whether it is connected and logged in. */
  isReady(): boolean
  /** Returns why it is not ready. */
  lastError(): Error | undefined
  /** Connects, unless it is connected or connecting. Rejects if it cannot. */
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
  /** Returns the address of the master that has the key; `undefined` if it is unknown. */
  addressOf(key: string): string | undefined
  /** Returns what opens a client for the master at the address; `undefined` if there is none. */
  masterAt(address: string): OpenClient<ServerClient> | undefined
  /** Asks the cluster again for its nodes. */
  refresh(): void
  /** Calls `onGone` with the address of each node that leaves. */
  onNodeGone(onGone: (address: string) => void): void
}

/** A client that the package opens, with any of the libraries. */
export type DedicatedClient = ServerClient | ClusterClient

/** What a client has in addition that reconnects until it is closed. */
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
 * Makes a client that connects once `connect` is called, and then reconnects. Its user waits for no reply
 * longer than `longestReplyMs`.
 */
export type OpenClient<C> = (longestReplyMs: number, listener: ClientListener) => C & Reconnecting

/** Opens dedicated clients with the options of the app's client. */
export interface ClientFactory {
  readonly keyPrefix: string
  readonly open: OpenClient<DedicatedClient>
  /**
   * Returns a function that opens the clients of a denylist. They do not reconnect: the denylist replaces a client
   * that has failed, so that no faulty state of it remains.
   */
  forDenylist(timeoutMs: number): () => DedicatedClient
}
