import { AsyncResource } from 'node:async_hooks'
import { setImmediate as endOfTick } from 'node:timers/promises'
import type {
  ClientFactory,
  ClusterClient,
  OpenClient,
  ServerClient,
} from '../clients/redis-client.js'
import { stallTimeoutFor } from '../clients/time-limits.js'
import {
  type CallState,
  errorText,
  isExpired,
  isReplyError,
  isUnknownScript,
  NotConfirmed,
  type RedisCall,
  retryUntilDeadline,
  startRedisCall,
  untilDeadline,
} from './redis-call.js'
import { type Connection, openLink } from './redis-connection.js'

/** The number of replicas that must acknowledge a reservation, and the time limit for that. */
interface Replicas {
  readonly min: number
  /** Milliseconds, in addition to the store's `timeoutMs`. */
  readonly timeoutMs: number
}

/** A call that may make a reservation, which the replicas must then acknowledge. */
interface ReservingCall extends RedisCall {
  /** Whether the reply confirms a reservation. */
  isReserved(reply: unknown): boolean
}

interface ReplicatedOptions {
  readonly timeoutMs: number
  readonly replicas: Replicas
}

/** Runs reservations that count only if enough replicas have acknowledged them. */
export function openReplicated(
  clients: ClientFactory,
  connection: Connection,
  { timeoutMs, replicas }: ReplicatedOptions,
) {
  const longestReplyMs = timeoutMs + replicas.timeoutMs
  // In a cluster, the first request that needs a connection opens it, and the connection outlives that request.
  const open = AsyncResource.bind(
    (openClient: OpenClient<ServerClient>): GroupCommit =>
      openGroupCommit(openClient, { replicas, longestReplyMs }),
  )
  const { cluster } = connection
  const groupCommits =
    cluster === undefined
      ? open(clients.open as OpenClient<ServerClient>)
      : openClusterCommits(cluster, connection, open)

  return {
    /** @throws NotConfirmed if the replicas do not acknowledge in time, or an Error with the error reply of Redis. */
    run(call: ReservingCall, state: CallState = startRedisCall(longestReplyMs)): Promise<unknown> {
      return connection.watch(retryUntilDeadline(state, () => groupCommits.commit(call, state)))
    },
    close: groupCommits.close,
  }
}

/** Opens a connection to each master that has a key, by address. */
function openClusterCommits(
  cluster: ClusterClient,
  { link }: Connection,
  open: (openClient: OpenClient<ServerClient>) => GroupCommit,
): GroupCommit {
  const groupCommits = new Map<string, GroupCommit>()
  const refreshSlots = AsyncResource.bind(() => cluster.refresh())

  cluster.onNodeGone((address) => {
    groupCommits.get(address)?.close()
    groupCommits.delete(address)
  })

  function groupCommitFor(key: string): GroupCommit {
    const address = cluster.addressOf(key)
    const existing = address === undefined ? undefined : groupCommits.get(address)
    if (existing !== undefined) return existing
    const openMaster = address === undefined ? undefined : cluster.masterAt(address)
    if (openMaster === undefined || address === undefined) throw new Error('the master has gone')
    const groupCommit = open(openMaster)
    groupCommits.set(address, groupCommit)
    return groupCommit
  }

  async function commit(call: ReservingCall, state: CallState): Promise<unknown> {
    await link.untilReady(state)
    try {
      return await groupCommitFor(call.key).commit(call, state)
    } catch (error) {
      const isUnacknowledged = error instanceof NotConfirmed && error.mayHaveRun
      // Any other error may mean that the key has moved to another node, for example by a failover.
      if (!isUnacknowledged) refreshSlots()
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

/** A connection to one master, used only for reservations and `WAIT`. */
interface GroupCommit {
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
  /** Whether to send the source, because the server did not have the script. */
  readonly withSource: boolean
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * Commits reservations in groups. `WAIT` covers the earlier writes of its connection, and blocks that
 * connection. So one `WAIT` follows all pending reservations, and those that arrive meanwhile form the
 * next group. The client must be used for nothing else.
 */
function openGroupCommit(
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

  // Under load the loop never ends, so it must not run in the async context of the first request.
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
      // Sending the source repeats nothing, because the server has refused the digest.
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
      // The source goes into the next group: sent now, it would follow the `WAIT`, which would not cover it.
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
