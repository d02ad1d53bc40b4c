import { createHash } from 'node:crypto'

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

/** A Lua script, which Redis runs atomically. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export const script = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})

/** A script with its keys and arguments. */
export interface RedisCall {
  readonly script: Script
  /** Without the key prefix of the app's client, which the library adds. */
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  /** Whether to send the source (`EVAL`) even if Redis has the script, because that needs another right. */
  readonly sendsSource?: boolean | undefined
  /** Whether the reply makes a reservation, which the replicas must then acknowledge. */
  isReserved?(reply: unknown): boolean
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
  /** Gives the client up while it connects. */
  readonly signal: AbortSignal
  /** Called once a client has lost its connection for good, with the cause. */
  onLost(error: Error): void
}

/**
 * Resolves with a client that has connected and logged in, and that never connects again. If it rejects, with the
 * cause, or is given up, nothing stays open, but for a cluster of node-redis: that holds its connection to a node
 * that accepts it and says nothing, until the node answers or its host ends the connection.
 */
export type OpenClient = (options: OpenOptions) => Promise<OwnClient>

/**
 * A client of the package's own, with the options of the app's client: one connection, or in a cluster as many as
 * the library needs. An error reply is an Error with the name `ReplyError`.
 */
export interface OwnClient {
  /** Sends `EVAL` or `EVALSHA`, not after `timeoutMs`. The strings in the reply are Buffers. */
  runScript(call: RedisCall, timeoutMs: number): Promise<unknown>
  /** Sends `WAIT` after all scripts that were run before, on the same connection. Not for a cluster. */
  wait(replicas: number, timeoutMs: number): Promise<number>
  /** Returns the nodes that accept writes. */
  masters(): Promise<readonly RedisNode[]>
  /** Disconnects without waiting for the server. */
  close(): void
  /** Returns the master of a slot, as a client of a cluster knows it; `undefined` if it is unknown. */
  masterOf?(slot: number): Master | undefined
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
  readonly usesTls: boolean
}

/** How often a client follows a key to another node of its cluster. */
export const MAX_REDIRECTIONS = 16

export const closedError = (): Error => new Error('Connection is closed.')

interface ReplyError extends Error {
  readonly name: 'ReplyError'
}

/** Whether Redis sent the error, so that the command had no effect. */
export const isReplyError = (error: unknown): error is ReplyError =>
  error instanceof Error && error.name === 'ReplyError'

/** Whether the connection is not logged in. To one that is not, Redis answers long commands in words of their own. */
export const isLoginError = (error: unknown): boolean =>
  isReplyError(error) && /^(WRONGPASS|NOAUTH)\b|\bunauthenticated\b/.test(error.message)

/**
 * Returns the message of a client's error without anything that was sent. ioredis attaches the command,
 * and Redis quotes the arguments of unknown commands, including passwords.
 */
export function errorText({ message }: Error): string {
  const text = message.replace(/,? with args beginning with:.*$/s, '')
  return text.includes('unauthenticated') ? `NOAUTH Authentication required (${text})` : text
}
