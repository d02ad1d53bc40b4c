import { AsyncResource } from 'node:async_hooks'
import { setImmediate as endOfTick } from 'node:timers/promises'
import {
  errorText,
  isReplyError,
  type Master,
  type OpenClient,
  type OpenOptions,
  type OwnClient,
  type RedisCall,
  script,
} from './client.js'
import {
  type CallState,
  type Connection,
  type Link,
  NotConfirmed,
  openLink,
  retryUntilDeadline,
  sendScript,
  startRedisCall,
  untilDeadline,
} from './redis-connection.js'

/** The number of replicas that must acknowledge a reservation, and the time limit for that. */
interface Replicas {
  readonly min: number
  /** Milliseconds, in addition to the store's `timeoutMs`. */
  readonly timeoutMs: number
}

interface ReplicatedOptions {
  readonly timeoutMs: number
  readonly replicas: Replicas
}

/** Runs calls on connections of their own, whose reservations count only if enough replicas acknowledge them. */
export function openReplicated(
  connection: Connection,
  { timeoutMs, replicas }: ReplicatedOptions,
): Pick<Connection, 'run' | 'close'> {
  const { clients } = connection
  const longestReplyMs = timeoutMs + replicas.timeoutMs
  // In a cluster, the first request that needs a connection opens it, and the connection outlives that request.
  const open = AsyncResource.bind((openClient: OpenClient): Link => {
    const openWaiting: OpenClient = async (options) =>
      withReplicas(await openClient(options), { ...options, ...replicas, longestReplyMs })
    const options = { ...clients, isCluster: false, longestReplyMs, tellsSilence: true }
    return openLink(openWaiting, options)
  })
  const { send, close } = clients.isCluster
    ? openMasters(connection, open)
    : openServer(open(clients.open))

  return {
    run: (call, state = startRedisCall(longestReplyMs)) =>
      connection.track(retryUntilDeadline(state, () => send(call, state))),
    close,
  }
}

/** Sends scripts to the node that has their keys. */
interface Sender {
  /** Sends the call once, as `sendScript`. */
  send(call: RedisCall, state: CallState): Promise<unknown>
  close(): void
}

const openServer = (link: Link): Sender => ({
  send: (call, state) => sendScript(link, call, state),
  close: link.close,
})

const RETURN_KEY = { script: script('return KEYS[1]'), args: [], sendsSource: true }

/** Opens a connection to each master that has a key, by address. */
function openMasters({ link, run }: Connection, open: (openClient: OpenClient) => Link): Sender {
  const links = new Map<string, Link>()
  let keyPrefix: string | undefined

  function linkFor(key: string): Link {
    const slot = slotOf(key)
    const masterNow = (): Master | undefined => link.current()?.masterOf?.(slot)
    const address = masterNow()?.address
    if (address === undefined) throw new Error('the master is not known')
    const existing = links.get(address)
    if (existing !== undefined) return existing
    // The client that knows the cluster may be another one when the connection is opened again.
    const opened = open((options) => {
      const master = masterNow()
      if (master?.address === address) return master.open(options)
      links.delete(address)
      opened.close()
      throw new Error('the master has gone')
    })
    links.set(address, opened)
    return opened
  }

  /** Only a script can tell what each library puts before a key. */
  async function askKeyPrefix(key: string, state: CallState): Promise<string> {
    const fullKey = String(await run({ ...RETURN_KEY, keys: [key] }, { ...state }))
    return fullKey.slice(0, -key.length)
  }

  return {
    async send(call, state) {
      await link.ready(state)
      const [key = ''] = call.keys
      try {
        keyPrefix ??= await askKeyPrefix(key, state)
        const fullKey = keyPrefix + key
        return await sendScript(linkFor(fullKey), { ...call, keys: [fullKey] }, state)
      } catch (error) {
        const isUnacknowledged = error instanceof NotConfirmed && error.mayHaveRun
        // Any other error may mean that the key has moved to another node, for example by a failover.
        if (!isUnacknowledged) link.refresh()
        const hasMoved = isReplyError(error) && /^(MOVED|ASK|READONLY) /.test(error.message)
        // The connection to a master that has gone is closed.
        const hasGone = error instanceof NotConfirmed && error.code === 'closed'
        throw hasMoved || hasGone ? new Error('the key has moved') : error
      }
    },
    close() {
      for (const each of links.values()) each.close()
    },
  }
}

interface WaitOptions extends Replicas, Pick<OpenOptions, 'onLost'> {
  readonly longestReplyMs: number
}

/** Reservations that are sent together, with one `WAIT` after them. */
interface Group {
  /** Resolves once they may be sent. */
  readonly begun: Promise<unknown>
  /** How many replicas have acknowledged them. @throws NotConfirmed */
  readonly count: Promise<number>
}

/**
 * A client whose reservations count only if enough replicas acknowledge them. `WAIT` covers the earlier writes of its
 * connection, and blocks that connection. So one `WAIT` follows all pending reservations, and those that arrive
 * meanwhile form the next group. A client never reconnects, so its count is about the reservations that it has sent.
 */
function withReplicas(
  client: OwnClient,
  { min, timeoutMs, longestReplyMs, onLost }: WaitOptions,
): OwnClient {
  let lastCount: Promise<unknown> = Promise.resolve()
  let next: Group | undefined

  function formGroup(): Group {
    const begun = lastCount.catch(() => {})
    const count = begun.then(endOfTick).then(countReplicas)
    count.catch(() => {})
    lastCount = count
    return { begun, count }
  }

  async function countReplicas(): Promise<number> {
    next = undefined
    const state = { ...startRedisCall(longestReplyMs), mayHaveRun: true }
    try {
      return await untilDeadline(client.wait(min, timeoutMs), state, () => {
        const silence = new NotConfirmed('Redis gave no count of replicas in time', true)
        onLost(silence)
        return silence
      })
    } catch (error) {
      if (!isReplyError(error)) throw error
      const text = `Redis cannot wait for replicas: ${errorText(error)}`
      throw new NotConfirmed(text, true, 'server')
    }
  }

  return {
    ...client,
    async runScript(call, scriptTimeoutMs) {
      const deadline = performance.now() + scriptTimeoutMs
      next ??= formGroup()
      const { begun, count } = next
      await begun
      // Nobody waits for it any more, and it has been undone.
      if (performance.now() >= deadline) throw new Error('it is too late to send it')
      const reply = await client.runScript(call, scriptTimeoutMs)
      if (!call.isReserved?.(reply)) return reply
      const acknowledged = await count
      if (acknowledged >= min) return reply
      const text = `${acknowledged} of ${min} replicas have acknowledged`
      throw new NotConfirmed(text, true, 'server')
    },
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
