import { AsyncResource } from 'node:async_hooks'
import { setImmediate as endOfTick } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { patienceOf } from '../connection/dedicated-client.js'
import { type Call, isUnknownScript, openLink } from '../connection/link.js'
import {
  type Attempt,
  faultText,
  isOver,
  isServersAnswer,
  NotConfirmed,
  within,
} from '../connection/redis-deadline.js'

/** How many replicas have to acknowledge a reservation, and how long that may take. */
export interface Replicas {
  readonly min: number
  /** Milliseconds, on top of the store's. */
  readonly timeoutMs: number
}

/** A call that may reserve something, of which the replicas then have to know. */
export interface ReservingCall extends Call {
  /** Whether the reply says that it has. */
  isReserved(reply: unknown): boolean
}

/** A connection to one master on which nothing but reservations and their waits are sent. */
export interface Lane {
  /** @throws NotConfirmed when the reservation is not acknowledged in time. */
  commit(call: ReservingCall, attempt: Attempt): Promise<unknown>
  close(): void
}

interface LaneOptions {
  readonly replicas: Replicas
  /** Milliseconds that anybody waits for a reply. */
  readonly longestReplyMs: number
}

class TooFewReplicas extends NotConfirmed {
  override readonly name: string = 'TooFewReplicas'
}

interface Entry {
  readonly call: ReservingCall
  readonly attempt: Attempt
  /** Whether the server has lost the script, and needs its source. */
  readonly bySource: boolean
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * Commits in groups: `WAIT` counts what its own connection has written before it and blocks that
 * connection, so one follows all reservations under way, and those that come meanwhile are the next
 * group. `redis` is the lane's own.
 */
export function openLane(redis: Redis, { replicas, longestReplyMs }: LaneOptions): Lane {
  const { min, timeoutMs } = replicas
  const link = openLink(redis, patienceOf(longestReplyMs))
  let waiting: Entry[] = []
  let isUnderWay = false

  function enqueue(entry: Entry): void {
    waiting.push(entry)
    if (!isUnderWay) void sendGroups()
  }

  // Under load it goes on forever, so it must not run in the context of the request that came first.
  const sendGroups = AsyncResource.bind(async (): Promise<void> => {
    isUnderWay = true
    while (waiting.length > 0) {
      await endOfTick()
      // Who has given up must not be sent: nobody would take it back.
      const group = waiting.filter(({ attempt }) => !isOver(attempt))
      waiting = []
      await send(group)
    }
    isUnderWay = false
  })

  async function send(group: readonly Entry[]): Promise<void> {
    if (group.length === 0) return
    const replies = group.map((entry) => {
      entry.attempt.mayHaveRun = true
      return entry.bySource ? link.evaluateSource(entry.call) : link.evaluateKnown(entry.call)
    })
    const acknowledged = countReplicas()
    acknowledged.catch(() => {})
    await Promise.all(group.map((entry, index) => conclude(entry, replies[index], acknowledged)))
    await acknowledged.catch(() => {})
  }

  async function countReplicas(): Promise<number> {
    try {
      return await link.watch(redis.wait(min, timeoutMs))
    } catch (error) {
      if (!isServersAnswer(error)) throw error
      throw new TooFewReplicas(
        `Redis cannot wait for replicas: ${faultText(error)}`,
        true,
        'server',
      )
    }
  }

  async function conclude(
    entry: Entry,
    reply: Promise<unknown> | undefined,
    acknowledged: Promise<number>,
  ): Promise<void> {
    try {
      const value = await reply
      const count = entry.call.isReserved(value) ? await acknowledged : min
      if (count >= min) entry.resolve(value)
      else
        entry.reject(
          new TooFewReplicas(`${count} of ${min} replicas have acknowledged`, true, 'server'),
        )
    } catch (error) {
      // With its source in the next group: on its own it would come after the wait.
      if (isUnknownScript(error) && !entry.bySource) enqueue({ ...entry, bySource: true })
      else entry.reject(error)
    }
  }

  return {
    async commit(call, attempt) {
      const becomingReady = link.untilReady(attempt)
      if (becomingReady !== undefined) await becomingReady
      const committed = new Promise((resolve, reject) => {
        enqueue({ call, attempt, bySource: false, resolve, reject })
      })
      return await within(committed, attempt)
    },
    close: link.close,
  }
}
