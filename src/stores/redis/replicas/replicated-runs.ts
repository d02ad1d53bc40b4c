import { AsyncResource } from 'node:async_hooks'
import type { Cluster, Redis } from 'ioredis'
import { type Client, duplicateRedis } from '../connection/dedicated-client.js'
import { slotOf } from '../connection/hash-slot.js'
import type { Connection } from '../connection/redis-connection.js'
import {
  type Attempt,
  attemptFor,
  isServersAnswer,
  NotConfirmed,
  persist,
} from '../connection/redis-deadline.js'
import { type Lane, openLane, type Replicas, type ReservingCall } from './group-commit.js'

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
  usersClient: Client,
  connection: Connection,
  { timeoutMs, replicas }: ReplicatedOptions,
): ReplicatedRuns {
  const longestReplyMs = timeoutMs + replicas.timeoutMs
  // In a cluster, the first request that needs a lane opens it, and the lane outlives that request.
  const open = AsyncResource.bind(
    (redis: Redis, keyPrefix?: string): Lane =>
      openLane(duplicateRedis(redis, longestReplyMs, keyPrefix), { replicas, longestReplyMs }),
  )
  const lanes = usersClient.isCluster
    ? lanesOfCluster(connection, open)
    : open(usersClient as Redis)

  return {
    run(call) {
      const attempt = attemptFor(longestReplyMs)
      return connection.watch(persist(attempt, () => lanes.commit(call, attempt)))
    },
    close: lanes.close,
  }
}

/** Opens a lane to each master that holds a key, by address. */
function lanesOfCluster(
  { link }: Connection,
  open: (redis: Redis, keyPrefix: string) => Lane,
): Lane {
  const cluster = link.client as Cluster
  const keyPrefix = cluster.options.keyPrefix ?? ''
  const lanes = new Map<string, Lane>()
  const refreshSlots = AsyncResource.bind(() => cluster.refreshSlotsCache(() => {}))

  cluster.on('-node', ({ options }: Redis) => {
    const address = `${options.host}:${options.port}`
    lanes.get(address)?.close()
    lanes.delete(address)
  })

  function laneFor(key: string): Lane {
    const [address] = cluster.slots[slotOf(keyPrefix + key)] ?? []
    const known = address === undefined ? undefined : lanes.get(address)
    if (known !== undefined) return known
    const node = cluster
      .nodes('master')
      .find(({ options }) => `${options.host}:${options.port}` === address)
    if (node === undefined || address === undefined) throw new Error('the master has gone')
    const lane = open(node, keyPrefix)
    lanes.set(address, lane)
    return lane
  }

  async function commit(call: ReservingCall, attempt: Attempt): Promise<unknown> {
    await link.untilReady(attempt)
    try {
      return await laneFor(call.key).commit(call, attempt)
    } catch (error) {
      // The key may have moved to another node, also in a failover.
      const isLateOrAlone = error instanceof NotConfirmed && error.mayHaveRun
      if (!isLateOrAlone) refreshSlots()
      if (isServersAnswer(error) && /^(MOVED|ASK|READONLY) /.test(error.message)) {
        throw new Error('the key has moved')
      }
      throw error
    }
  }

  return {
    commit,
    close() {
      for (const lane of lanes.values()) lane.close()
    },
  }
}
