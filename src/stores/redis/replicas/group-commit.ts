import { AsyncResource } from 'node:async_hooks'
import { setImmediate as endOfTick } from 'node:timers/promises'
import type { OpenClient, ServerClient } from '../clients/redis-client.js'
import { stallTimeoutFor } from '../clients/time-limits.js'
import { openLink } from '../connection/link.js'
import {
  type CallState,
  errorText,
  isExpired,
  isReplyError,
  isUnknownScript,
  NotConfirmed,
  type RedisCall,
  untilDeadline,
} from '../connection/redis-call.js'

/** The number of replicas that must acknowledge a reservation, and the time limit for that. */
export interface Replicas {
  readonly min: number
  /** Milliseconds, in addition to the store's `timeoutMs`. */
  readonly timeoutMs: number
}

/** A call that may make a reservation, which the replicas must then acknowledge. */
export interface ReservingCall extends RedisCall {
  /** Whether the reply confirms a reservation. */
  isReserved(reply: unknown): boolean
}

/** A connection to one master, used only for reservations and `WAIT`. */
export interface GroupCommit {
  /** @throws NotConfirmed if the reservation is not acknowledged in time. */
  commit(call: ReservingCall, state: CallState): Promise<unknown>
  close(): void
}

interface GroupCommitOptions {
  readonly replicas: Replicas
  /** The longest time limit of a reply, in milliseconds. */
  readonly longestReplyMs: number
}

class TooFewReplicas extends NotConfirmed {
  override readonly name: string = 'TooFewReplicas'
}

interface Entry {
  readonly call: ReservingCall
  readonly state: CallState
  /** Whether the server does not have the script, and needs its source. */
  readonly withSource: boolean
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * Commits reservations in groups. `WAIT` covers the earlier writes of its connection, and blocks that
 * connection. So one `WAIT` follows all pending reservations, and those that arrive meanwhile form the
 * next group. The client must be used for nothing else.
 */
export function openGroupCommit(
  open: OpenClient<ServerClient>,
  { replicas, longestReplyMs }: GroupCommitOptions,
): GroupCommit {
  const { min, timeoutMs } = replicas
  const link = openLink(
    (listener) => open(longestReplyMs, listener),
    stallTimeoutFor(longestReplyMs),
  )
  let queue: Entry[] = []
  let isSending = false

  function enqueue(entry: Entry): void {
    queue.push(entry)
    if (!isSending) void sendGroups()
  }

  // Under load it never ends, so it must not run in the async context of the first request.
  const sendGroups = AsyncResource.bind(async (): Promise<void> => {
    isSending = true
    while (queue.length > 0) {
      await endOfTick()
      // A reservation that has timed out must not be sent, because nothing would undo it.
      const group = queue.filter(({ state }) => !isExpired(state))
      queue = []
      await send(group)
    }
    isSending = false
  })

  async function send(group: readonly Entry[]): Promise<void> {
    if (group.length === 0) return
    const replies = group.map((entry) => {
      // A script without its source has not run.
      if (!entry.withSource) entry.state.isRepeated = entry.state.mayHaveRun
      entry.state.mayHaveRun = true
      return entry.withSource ? link.sendSource(entry.call) : link.sendDigest(entry.call)
    })
    const acknowledged = countReplicas()
    acknowledged.catch(() => {})
    await Promise.all(group.map((entry, index) => conclude(entry, replies[index], acknowledged)))
    await acknowledged.catch(() => {})
  }

  async function countReplicas(): Promise<number> {
    try {
      const waiting = link.client.command('WAIT', String(min), String(timeoutMs))
      return Number(await link.watch(waiting))
    } catch (error) {
      if (!isReplyError(error)) throw error
      throw new TooFewReplicas(
        `Redis cannot wait for replicas: ${errorText(error)}`,
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
      // Resend the source in the next group: alone, it would run after the `WAIT`.
      if (isUnknownScript(error) && !entry.withSource) enqueue({ ...entry, withSource: true })
      else entry.reject(error)
    }
  }

  return {
    async commit(call, state) {
      const becomingReady = link.untilReady(state)
      if (becomingReady !== undefined) await becomingReady
      const committed = new Promise((resolve, reject) => {
        enqueue({ call, state, withSource: false, resolve, reject })
      })
      return await untilDeadline(committed, state)
    },
    close: link.close,
  }
}
