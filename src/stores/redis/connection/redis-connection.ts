import { AsyncResource } from 'node:async_hooks'
import { type HealthWatch, watchHealth } from '../../store-health.js'
import type {
  ClientFactory,
  ClientListener,
  ClusterClient,
  DedicatedClient,
  Reconnecting,
  RedisNode,
  ScriptCommand,
} from '../clients/redis-client.js'
import { detectStalls } from '../clients/stall-detector.js'
import { stallTimeoutFor } from '../clients/time-limits.js'
import { connectionErrorText } from './connection-error.js'
import {
  atDeadline,
  type CallState,
  isReplyError,
  NotConfirmed,
  type RedisCall,
  retryUntilDeadline,
  type ScriptSender,
  sendScript,
  startRedisCall,
  untilDeadline,
} from './redis-call.js'

/** Runs scripts on a dedicated connection, each within `timeoutMs`. */
export interface Connection {
  readonly link: Link
  /** The client of `link`, if it is for a cluster. */
  readonly cluster: ClusterClient | undefined
  readonly health: HealthWatch
  /**
   * Runs a call, and repeats it if its reply was lost. A repeated call must have no further effect.
   *
   * @throws NotConfirmed if there was no reply in time, or an Error with the error reply of Redis.
   */
  run(call: RedisCall, state?: CallState): Promise<unknown>
  /** Returns the nodes that now accept writes. @throws NotConfirmed if they are not known in time. */
  masters(): Promise<readonly RedisNode[]>
  /** Records in `health` how the promise settles, and returns the promise. */
  watch<T>(reply: Promise<T>): Promise<T>
  close(): void
}

export function openConnection(clients: ClientFactory, timeoutMs: number): Connection {
  const link = openLink((listener) => clients.open(timeoutMs, listener), stallTimeoutFor(timeoutMs))
  const health = watchHealth()

  const recordFailure = (error: unknown): void => {
    health.down(error instanceof NotConfirmed ? error.code : 'server')
  }
  const watch = <T>(reply: Promise<T>): Promise<T> => {
    reply.then(health.up, recordFailure)
    return reply
  }

  return {
    link,
    cluster: link.client.isCluster ? link.client : undefined,
    health,
    watch,
    run(call, state = startRedisCall(timeoutMs)) {
      return watch(retryUntilDeadline(state, () => sendScript(link, call, state)))
    },
    masters() {
      const state = startRedisCall(timeoutMs)
      return watch(
        retryUntilDeadline(state, async () => {
          await link.untilReady(state)
          return await untilDeadline(link.client.masters(), state)
        }),
      )
    },
    close() {
      link.close()
      health.down('closed')
    },
  }
}

/**
 * A dedicated client. It connects on first use and reconnects after a disconnect, in the async context
 * in which the link was opened.
 */
interface Link<C extends DedicatedClient = DedicatedClient> extends ScriptSender<RedisCall> {
  readonly client: C
  /** Counts a reply on this connection as pending until it settles, and returns the promise. */
  watch<T>(reply: Promise<T>): Promise<T>
  close(): void
}

/** Opens a client. Replaces its connection if nothing arrives for `stallTimeoutMs` while a reply is pending. */
export function openLink<C extends DedicatedClient & Reconnecting>(
  open: (listener: ClientListener) => C,
  stallTimeoutMs: number,
): Link<C> {
  const waiters = new Set<() => void>()
  let endHandshake = (): void => {}
  let isClosed = false

  const client = open({
    // The end of the handshake counts as a pending reply.
    connected: () => void watch(new Promise<void>((resolve) => (endHandshake = resolve))),
    ready() {
      endHandshake()
      letWaitersProceed()
    },
    lost: () => endHandshake(),
  })
  // A cluster client itself replaces the connection of a silent node.
  const stallDetector = client.isCluster
    ? undefined
    : detectStalls(stallTimeoutMs, () => client.reconnect())

  const connect = AsyncResource.bind(() => {
    client.connect().catch(() => {})
  })
  const watch = <T>(reply: Promise<T>): Promise<T> => stallDetector?.watch(reply) ?? reply
  const send = (command: ScriptCommand['command'], script: string, { key, args }: RedisCall) =>
    watch(client.runScript({ command, script, keys: [key], args, texts: 'buffers' }))
  // A cluster client connects to a node when a command first needs it. That connection outlives the
  // request, so the command must not be sent in the async context of the request.
  const sendInContext = client.isCluster ? AsyncResource.bind(send) : send

  function letWaitersProceed(): void {
    for (const proceed of waiters) proceed()
    waiters.clear()
  }

  return {
    client,
    untilReady(state) {
      if (isClosed) throw new NotConfirmed('the store is closed', state.mayHaveRun, 'closed')
      if (client.isReady()) return undefined
      connect()
      // Calls that have timed out must leave nothing in memory, because an outage can be long.
      return new Promise((resolve, reject) => {
        const cancel = atDeadline(state, () => {
          waiters.delete(proceed)
          reject(unreachableError(state, client))
        })
        const proceed = (): void => {
          cancel()
          resolve()
        }
        waiters.add(proceed)
      })
    },
    sendDigest: (call) => sendInContext('evalsha', call.script.sha, call),
    sendSource: (call) => sendInContext('eval', call.script.source, call),
    watch,
    close() {
      isClosed = true
      stallDetector?.close()
      client.close()
      letWaitersProceed()
    },
  }
}

function unreachableError({ mayHaveRun }: CallState, client: DedicatedClient): NotConfirmed {
  const error = client.lastError()
  const code = isReplyError(error) ? 'server' : 'network'
  return new NotConfirmed(connectionErrorText(client, error), mayHaveRun, code)
}
