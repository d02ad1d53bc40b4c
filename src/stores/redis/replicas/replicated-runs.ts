import { AsyncResource } from 'node:async_hooks'
import type { Cluster, Redis } from 'ioredis'
import { type Client, duplicateRedis } from '../connection/dedicated-client.js'
import { slotOf } from '../connection/hash-slot.js'
import {
  type CallState,
  isReplyError,
  NotConfirmed,
  retryUntilDeadline,
  startRedisCall,
} from '../connection/redis-call.js'
import type { Connection } from '../connection/redis-connection.js'
import {
  type GroupCommit,
  openGroupCommit,
  type Replicas,
  type ReservingCall,
} from './group-commit.js'

/** Runs reservations that count only if enough replicas have acknowledged them. */
export interface ReplicatedRuns {
  /** @throws NotConfirmed if they have not in time, or an Error with the error reply of Redis. */
  run(call: ReservingCall): Promise<unknown>
  close(): void
}

interface ReplicatedOptions {
  readonly timeoutMs: number
  readonly replicas: Replicas
}

export function openReplicated(
  appClient: Client,
  connection: Connection,
  { timeoutMs, replicas }: ReplicatedOptions,
): ReplicatedRuns {
  const longestReplyMs = timeoutMs + replicas.timeoutMs
  // In a cluster, the first request that needs a connection opens it, and the connection outlives that request.
  const open = AsyncResource.bind(
    (redis: Redis, keyPrefix?: string): GroupCommit =>
      openGroupCommit(duplicateRedis(redis, longestReplyMs, keyPrefix), {
        replicas,
        longestReplyMs,
      }),
  )
  const groupCommits = appClient.isCluster
    ? openClusterCommits(connection, open)
    : open(appClient as Redis)

  return {
    run(call) {
      const state = startRedisCall(longestReplyMs)
      return connection.watch(retryUntilDeadline(state, () => groupCommits.commit(call, state)))
    },
    close: groupCommits.close,
  }
}

/** Opens a connection to each master that has a key, by address. */
function openClusterCommits(
  { link }: Connection,
  open: (redis: Redis, keyPrefix: string) => GroupCommit,
): GroupCommit {
  const cluster = link.client as Cluster
  const keyPrefix = cluster.options.keyPrefix ?? ''
  const groupCommits = new Map<string, GroupCommit>()
  const refreshSlots = AsyncResource.bind(() => cluster.refreshSlotsCache(() => {}))

  cluster.on('-node', ({ options }: Redis) => {
    const address = `${options.host}:${options.port}`
    groupCommits.get(address)?.close()
    groupCommits.delete(address)
  })

  function groupCommitFor(key: string): GroupCommit {
    const [address] = cluster.slots[slotOf(keyPrefix + key)] ?? []
    const existing = address === undefined ? undefined : groupCommits.get(address)
    if (existing !== undefined) return existing
    const node = cluster
      .nodes('master')
      .find(({ options }) => `${options.host}:${options.port}` === address)
    if (node === undefined || address === undefined) throw new Error('the master has gone')
    const groupCommit = open(node, keyPrefix)
    groupCommits.set(address, groupCommit)
    return groupCommit
  }

  async function commit(call: ReservingCall, state: CallState): Promise<unknown> {
    await link.untilReady(state)
    try {
      return await groupCommitFor(call.key).commit(call, state)
    } catch (error) {
      // The key may have moved to another node, also in a failover.
      const isLateOrAlone = error instanceof NotConfirmed && error.mayHaveRun
      if (!isLateOrAlone) refreshSlots()
      if (isReplyError(error) && /^(MOVED|ASK|READONLY) /.test(error.message)) {
        throw new Error('the key has moved')
      }
      throw error
    }
  }

  return {
    commit,
    close() {
      for (const groupCommit of groupCommits.values()) groupCommit.close()
    },
  }
}
