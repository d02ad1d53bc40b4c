import { type HealthWatch, watchHealth } from '../../store-health.js'
import type { ClientFactory, ClusterClient, RedisNode } from '../clients/redis-client.js'
import { stallTimeoutFor } from '../clients/time-limits.js'
import { type Link, openLink } from './link.js'
import {
  type CallState,
  NotConfirmed,
  type RedisCall,
  retryUntilDeadline,
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
  /** Records in the health how the promise settles, and returns it. */
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
