import { AsyncResource } from 'node:async_hooks'
import { setImmediate as endOfTick } from 'node:timers/promises'
import {
  type ClusterMap,
  errorText,
  isReplyError,
  type OpenClient,
  type OwnClient,
  type RedisCall,
} from './client.js'
import {
  type CallState,
  type Connection,
  isExpired,
  isUnknownScript,
  type Link,
  leftMs,
  NotConfirmed,
  openLink,
  retryUntilDeadline,
  startRedisCall,
  untilDeadline,
} from './redis-connection.js'

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
export function openReplicated(connection: Connection, { timeoutMs, replicas }: ReplicatedOptions) {
  const { clients } = connection
  const longestReplyMs = timeoutMs + replicas.timeoutMs
  // In a cluster, the first request that needs a connection opens it, and the connection outlives that request.
  const open = AsyncResource.bind((openClient: OpenClient): GroupCommit => {
    const link = openLink(openClient, { ...clients, isCluster: false, longestReplyMs })
    return openGroupCommit(link, { ...replicas, longestReplyMs })
  })
  const groupCommits = clients.isCluster ? openClusterCommits(connection, open) : open(clients.open)

  return {
    /** @throws NotConfirmed */
    run(call: ReservingCall, state: CallState = startRedisCall(longestReplyMs)): Promise<unknown> {
      return connection.track(retryUntilDeadline(state, () => groupCommits.commit(call, state)))
    },
    close: groupCommits.close,
  }
}

/** Opens a connection to each master that has a key, by address. */
function openClusterCommits(
  { link }: Connection,
  open: (openClient: OpenClient) => GroupCommit,
): GroupCommit {
  const groupCommits = new Map<string, GroupCommit>()
  let keyPrefix: string | undefined

  function groupCommitFor(key: string, cluster: ClusterMap): GroupCommit {
    const slot = slotOf(key)
    const address = cluster.masterOf(slot)?.address
    if (address === undefined) throw new Error('the master is not known')
    const existing = groupCommits.get(address)
    if (existing !== undefined) return existing
    // The client that knows the cluster may be another one when the connection is opened again.
    const groupCommit = open((options) => {
      const master = link.current()?.cluster?.masterOf(slot)
      if (master?.address === address) return master.open(options)
      groupCommits.delete(address)
      groupCommit.close()
      throw new Error('the master has gone')
    })
    groupCommits.set(address, groupCommit)
    return groupCommit
  }

  async function commit(call: ReservingCall, state: CallState): Promise<unknown> {
    const { cluster } = await link.ready(state)
    const [key = ''] = call.keys
    try {
      if (cluster === undefined) throw new Error('the cluster is not known')
      keyPrefix ??= await untilDeadline(cluster.keyPrefix(key), state)
      const fullKey = keyPrefix + key
      return await groupCommitFor(fullKey, cluster).commit({ ...call, keys: [fullKey] }, state)
    } catch (error) {
      const isUnacknowledged = error instanceof NotConfirmed && error.mayHaveRun
      // Any other error may mean that the key has moved to another node, for example by a failover.
      if (!isUnacknowledged) link.refresh()
      const hasMoved = isReplyError(error) && /^(MOVED|ASK|READONLY) /.test(error.message)
      // The connection to a master that has gone is closed.
      const hasGone = error instanceof NotConfirmed && error.code === 'closed'
      throw hasMoved || hasGone ? new Error('the key has moved') : error
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

interface Entry {
  /** Sends its source once the server did not have the script. */
  call: ReservingCall
  readonly state: CallState
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * Commits reservations in groups. `WAIT` covers the earlier writes of its connection, and blocks that
 * connection. So one `WAIT` follows all pending reservations, and those that arrive meanwhile form the
 * next group. A client never reconnects, so its count is about the reservations that it has sent.
 */
function openGroupCommit(
  link: Link,
  { min, timeoutMs, longestReplyMs }: Replicas & { readonly longestReplyMs: number },
): GroupCommit {
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
      const client = link.current()
      if (client !== undefined) await send(group, client)
      else for (const { reject } of group) reject(new Error('the connection was lost'))
    }
    isSending = false
  })

  async function send(group: readonly Entry[], client: OwnClient): Promise<void> {
    if (group.length === 0) return
    const replies = group.map((entry) => {
      const { call, state } = entry
      // Sending the source repeats nothing, because the server has refused the digest.
      if (!call.sendsSource) state.isRepeated = state.mayHaveRun
      state.mayHaveRun = true
      return link.use(client, ({ runScript }) => runScript(call, leftMs(state)))
    })
    const acknowledged = countReplicas(client)
    await Promise.allSettled([
      acknowledged,
      ...group.map((entry, index) => conclude(entry, replies[index], acknowledged)),
    ])
  }

  /** Without a reply in time nothing more can be sent on the connection, so it is replaced. */
  async function countReplicas(client: OwnClient): Promise<number> {
    const state = { ...startRedisCall(longestReplyMs), mayHaveRun: true }
    try {
      const reply = link.use(client, ({ wait }) => wait(min, timeoutMs))
      return await untilDeadline(reply, state, () => {
        link.replace(client)
        return new NotConfirmed('Redis gave no count of replicas in time', true)
      })
    } catch (error) {
      if (!isReplyError(error)) throw error
      const text = `Redis cannot wait for replicas: ${errorText(error)}`
      throw new NotConfirmed(text, true, 'server')
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
      if (count >= min) return entry.resolve(value)
      entry.reject(
        new NotConfirmed(`${count} of ${min} replicas have acknowledged`, true, 'server'),
      )
    } catch (error) {
      if (!isUnknownScript(error) || entry.call.sendsSource) return entry.reject(error)
      // The source goes into the next group: sent now, it would follow the `WAIT`, which would not cover it.
      entry.call = { ...entry.call, sendsSource: true }
      enqueue(entry)
    }
  }

  return {
    async commit(call, state) {
      if (link.current() === undefined) await link.ready(state)
      const committed = new Promise((resolve, reject) => {
        enqueue({ call, state, resolve, reject })
      })
      return await untilDeadline(committed, state)
    },
    close: link.close,
  }
}

const SLOTS = 16_384
/** CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021

/** Returns the cluster slot of a key (Redis cluster specification: key distribution). */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(hashedPart(key))) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL
    }
    crc &= 0xffff
  }
  return crc % SLOTS
}

/** Returns the hash tag, between the first `{` and the next `}`; if it is empty or missing, the key. */
function hashedPart(key: string): string {
  const start = key.indexOf('{')
  const end = start === -1 ? -1 : key.indexOf('}', start + 1)
  return end > start + 1 ? key.slice(start + 1, end) : key
}
