/** A `Redis` or `Cluster` of ioredis 5 or 6, or of iovalkey 0.3 or 0.4. */
export interface IoredisLike {
  /** Whether it is a `Cluster`. */
  readonly isCluster: boolean
  /** The state of its connection. */
  readonly status: string
  /** Makes another client with the same options. */
  duplicate(...overrides: never[]): unknown
}

/** What `createClient` or `createCluster` of node-redis 5 or 6 returns. */
export interface NodeRedisLike {
  /** Whether it has been connected. */
  readonly isOpen: boolean
  /** Makes another client with the same options. */
  duplicate(overrides?: never): unknown
  /** New in node-redis 5. */
  withTypeMapping(mapping: never): unknown
  /** New in node-redis 5. */
  destroy(): unknown
}

/** A client of any supported library. */
export type RedisClientLike = IoredisLike | NodeRedisLike

/** `EVALSHA` or `EVAL`. */
export interface ScriptCommand {
  readonly command: 'evalsha' | 'eval'
  /** The digest for `EVALSHA`, the source for `EVAL`. */
  readonly script: string
  /** Without the key prefix of the app's client, which the library adds. */
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  /** Milliseconds after which the command must not be sent any more. */
  readonly timeoutMs: number
}

/** One server, for commands that have no keys. */
export interface RedisNode {
  /** Host and port, or the path of the socket; with sentinels, the name of the master. */
  readonly address: string
  readonly isBehindSentinel: boolean
  /** Resolves with the reply, whose strings are JavaScript strings, not Buffers. */
  command(...words: readonly string[]): Promise<unknown>
}

/** How to open a client. */
export interface OpenOptions {
  readonly connectTimeoutMs: number
  /** What each string in the reply of a script becomes in JavaScript. */
  readonly texts: 'strings' | 'buffers'
  /** Called once a client has lost its connection for good, with the cause. */
  onLost(error: Error): void
}

/** Makes a client, which connects once `connect` is called, and never again after its connection is lost. */
export type OpenClient = (options: OpenOptions) => OwnClient

/**
 * A client of the package's own, with the options of the app's client: one connection, or in a cluster as many as
 * the library needs. An error reply is an Error with the name `ReplyError`.
 */
export interface OwnClient {
  /** Connects and logs in. Rejects with the cause if it cannot. */
  connect(): Promise<void>
  /** Whether the client waits for the answer to its TLS handshake. */
  isTlsUnanswered(): boolean
  runScript(command: ScriptCommand): Promise<unknown>
  /** Sends `WAIT` after all scripts that were run before, on the same connection. Not for a cluster. */
  wait(replicas: number, timeoutMs: number): Promise<number>
  /** Returns the nodes that accept writes. */
  masters(): Promise<readonly RedisNode[]>
  /** Disconnects without waiting for the server. */
  close(): void
  /** What only a client of a cluster has. */
  readonly cluster?: ClusterMap | undefined
}

/** Where the keys of a cluster are, as its client knows. */
export interface ClusterMap {
  /** Returns what the client puts before each key. `key` is one that the user may access. */
  keyPrefix(key: string): Promise<string>
  /** Returns the master of a slot; `undefined` if it is unknown. */
  masterOf(slot: number): Master | undefined
}

/** A master of a cluster. */
export interface Master {
  readonly address: string
  /** Opens a client for this node alone, which adds no key prefix. */
  readonly open: OpenClient
}

/** Opens clients with the library and the options of the app's client. */
export interface OwnClients {
  readonly open: OpenClient
  readonly isCluster: boolean
  readonly database: number
  /** The key prefix of the app's client, as far as its library tells. */
  readonly keyPrefix: string
}

export const closedError = (): Error => new Error('Connection is closed.')

/** How often a client follows a key to another node of its cluster. */
export const MAX_REDIRECTIONS = 16
