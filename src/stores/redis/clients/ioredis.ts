import { setImmediate as endOfTick } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Cluster, Redis } from 'ioredis'
import { isReplyError } from '../connection/redis-call.js'
import { slotOf } from './hash-slot.js'
import { denylistClients } from './ioredis-denylist-clients.js'
import { duplicateClient, duplicateRedis, type Ioredis } from './ioredis-duplicates.js'
import type {
  BaseClient,
  ClientFactory,
  ClientListener,
  ClusterClient,
  DedicatedClient,
  Reconnecting,
  RedisNode,
  ServerClient,
} from './redis-client.js'
import { REFUSED_RETRY_MS } from './time-limits.js'

/** Opens clients of ioredis 5 or 6, or of iovalkey 0.3 or 0.4. */
export function ioredisFactory(appClient: Ioredis): ClientFactory {
  return {
    keyPrefix: appClient.options.keyPrefix ?? '',
    open: (longestReplyMs, listener) => wrap(duplicateClient(appClient, longestReplyMs), listener),
    forDenylist(timeoutMs) {
      const clients = denylistClients(appClient, timeoutMs)
      return () => {
        const client = clients.create()
        const wrapped = wrap(client, {})
        return {
          ...wrapped,
          async connect() {
            await wrapped.connect()
            clients.recordNodes(client)
          },
        }
      }
    },
  }
}

export const wrap = (client: Ioredis, listener: ClientListener): DedicatedClient & Reconnecting =>
  client.isCluster ? wrapCluster(client as Cluster, listener) : wrapRedis(client as Redis, listener)

const wrapRedis = (redis: Redis, listener: ClientListener): ServerClient & Reconnecting => ({
  ...baseOf(redis, listener),
  ...nodeOf(redis),
  isCluster: false,
})

function wrapCluster(cluster: Cluster, listener: ClientListener): ClusterClient & Reconnecting {
  const { keyPrefix = '' } = cluster.options
  return {
    ...baseOf(cluster, listener),
    isCluster: true,
    addressOf: (key) => cluster.slots[slotOf(keyPrefix + key)]?.[0],
    masterAt(address) {
      const master = cluster.nodes('master').find((node) => nodeAddress(node) === address)
      if (master === undefined) return undefined
      // A node of a cluster may lack the prefix.
      return (longestReplyMs, nodeListener) =>
        wrapRedis(duplicateRedis(master, longestReplyMs, keyPrefix), nodeListener)
    },
    refresh: () => cluster.refreshSlotsCache(() => {}),
    onNodeGone(onGone) {
      cluster.on('-node', (node: Redis) => onGone(nodeAddress(node)))
    },
  }
}

const nodeAddress = ({ options }: Redis): string => `${options.host}:${options.port}`

function nodeOf(redis: Redis): RedisNode {
  const { sentinels, name, path } = redis.options
  const isBehindSentinel = Boolean(sentinels)
  return {
    address: isBehindSentinel ? String(name) : (path ?? nodeAddress(redis)),
    isBehindSentinel,
    command: (command = '', ...words) => redis.call(command, words),
  }
}

async function freshMasters(cluster: Cluster): Promise<readonly RedisNode[]> {
  await new Promise<void>((resolve, reject) => {
    cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()))
  })
  return cluster.nodes('master').map(nodeOf)
}

/** Functions of ioredis that its types omit. */
type RunScript = (
  script: string,
  keyCount: number,
  ...rest: readonly (string | Buffer)[]
) => Promise<unknown>
type Scripts = Record<'evalsha' | 'eval' | 'evalshaBuffer' | 'evalBuffer', RunScript>

function baseOf(client: Ioredis, listener: ClientListener): BaseClient & Reconnecting {
  const scripts = client as unknown as Scripts
  const corkForThisTick = client.isCluster ? () => {} : createCork(client as Redis)
  let confirming: Promise<unknown> | undefined
  let lastError: Error | undefined
  let isUsable = false
  let isClosed = false

  // Callers get the errors; without a listener, ioredis would print them.
  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    const { lastNodeError: cause = error } = error
    if (cause.message !== '') lastError = cause
  })
  client.on('connect', () => listener.connected?.())
  client.on('close', () => {
    isUsable = false
    listener.lost?.()
  })
  client.on('ready', () => {
    confirming = confirmHandshake(client)
    if (confirming === undefined) becomeUsable()
    else confirming.then(becomeUsable, reconnectIfRefused)
  })

  function becomeUsable(): void {
    if (client.status !== 'ready') return
    isUsable = true
    lastError = undefined
    listener.ready?.()
  }

  /** Reconnects after a refused login or database; ioredis itself reconnects after a lost connection. */
  function reconnectIfRefused(error: Error): void {
    if (!isReplyError(error)) return
    lastError = error
    const { stream } = client as Redis
    const reconnect = (): void => {
      if (!isClosed && (client as Redis).stream === stream) client.disconnect(true)
    }
    setTimeout(reconnect, REFUSED_RETRY_MS).unref()
  }

  return {
    database: databaseOf(client),
    isReady: () => isUsable && client.status === 'ready',
    lastError: () => lastError,
    async connect() {
      if (client.status !== 'wait' && client.status !== 'end') return
      await client.connect()
      await confirming
    },
    reconnect: () => client.disconnect(true),
    close() {
      isClosed = true
      client.disconnect()
    },
    runScript({ command, script, keys, args, texts }) {
      corkForThisTick()
      const name = texts === 'strings' ? command : (`${command}Buffer` as const)
      return scripts[name](script, keys.length, ...keys, ...args)
    },
    async masters() {
      if (client.isCluster) return await freshMasters(client as Cluster)
      return [nodeOf(client as Redis)]
    },
    isTlsUnanswered(error) {
      if (client.isCluster) return false
      const { options, stream } = client as Redis
      if (options.tls && error?.message === 'connect ETIMEDOUT') return true
      return stream instanceof TLSSocket && !stream.connecting && stream.getCipher() === undefined
    },
  }
}

/** Corks the stream for one tick, so that all commands of the tick need one system call. */
function createCork(client: Redis): () => void {
  let corked: Redis['stream'] | undefined

  return () => {
    const { stream } = client
    if (stream === undefined || stream === corked) return
    corked = stream
    stream.cork()
    setImmediate(() => {
      if (corked === stream) corked = undefined
      stream.uncork()
    })
  }
}

const databaseOf = (client: Ioredis): number =>
  client.isCluster ? 0 : Number((client as Redis).options.db ?? 0)

/**
 * Resolves once Redis has accepted the login and the database. ioredis reports `ready` before that, and commands sent
 * meanwhile would run as the default user or in database 0. Returns `undefined` if the client needs neither.
 *
 * @throws Error with the reply of Redis, or because the connection was closed.
 */
function confirmHandshake(client: Ioredis): Promise<unknown> | undefined {
  if (client.isCluster) return undefined
  const redis = client as Redis
  if (databaseOf(redis) === 0 && !redis.options.password) return undefined
  return confirm(redis)
}

async function confirm(redis: Redis): Promise<void> {
  const db = databaseOf(redis)
  let loginError: Error | undefined
  const recordLoginError = (error: Error): void => {
    if (error.message.startsWith('WRONGPASS')) loginError = error
  }
  redis.on('error', recordLoginError)
  try {
    await (db === 0 ? redis.ping() : redis.select(db))
    // ioredis 5 emits the error of a login after it has settled the next command.
    await endOfTick()
  } catch (error) {
    // Other error replies to PING, to a user without the right or while the server loads, prove the login.
    const isRefused = db !== 0 || !isReplyError(error) || NO_LOGIN.test(error.message)
    if (isRefused) throw loginError ?? error
  } finally {
    redis.off('error', recordLoginError)
  }
  if (loginError !== undefined) throw loginError
}

const NO_LOGIN = /^(WRONGPASS|NOAUTH)\b/
