import { AsyncResource } from 'node:async_hooks'
import { startTimer } from '../../../base/deadline.js'
import { type HealthWatch, watchHealth } from '../../store-health.js'
import type {
  OpenClient,
  OpenOptions,
  OwnClient,
  OwnClients,
  RedisNode,
  ScriptCommand,
} from './client.js'
import {
  atDeadline,
  type CallState,
  errorText,
  isExpired,
  isReplyError,
  isUnknownScript,
  NotConfirmed,
  noReplyError,
  type RedisCall,
  retryUntilDeadline,
  startRedisCall,
  untilDeadline,
} from './redis-call.js'

const MIN_CONNECT_TIMEOUT_MS = 500
const MAX_CONNECT_TIMEOUT_MS = 10_000
const MAX_RECONNECT_DELAY_MS = 250
/** The delay before reconnecting if Redis refuses the login or the database. */
const REFUSED_RETRY_MS = 500
/** A client of a cluster is replaced at most this often, because its other nodes may be well. */
const CLUSTER_REPLACE_INTERVAL_MS = 1000

const NO_LOGIN = /^(WRONGPASS|NOAUTH)\b/
/** A new connection may get another answer: from the new master, or with a new password. */
const WRONG_CONNECTION = /^(READONLY|WRONGPASS|NOAUTH)\b|\bunauthenticated\b/

/**
 * A client of the package's own, replaced by a new one once its connection is lost or stalled. It connects on first
 * use, and each time in the async context in which the link was opened.
 */
export interface Link {
  /** The client in use; `undefined` while there is no connection. */
  current(): OwnClient | undefined
  /** Returns `undefined` if it is ready. @throws NotConfirmed if it is not ready in time. */
  untilReady(state: CallState): Promise<void> | undefined
  /** Sends something on a client of this link, and takes note of the reply. */
  use<T>(client: OwnClient, send: (client: OwnClient) => Promise<T>): Promise<T>
  /** Replaces the client if nothing has arrived on it since the call was sent that has timed out. */
  reportTimeout(client: OwnClient, sentAt: number): void
  /** Replaces the client of a cluster, which then asks again for its nodes. */
  refresh(): void
  /** Replaces the client. */
  replace(client: OwnClient): void
  close(): void
}

interface LinkOptions extends Pick<OpenOptions, 'texts'> {
  readonly isCluster: boolean
  readonly database: number
  /** The longest time limit of a reply, in milliseconds. */
  readonly longestReplyMs: number
}

export function openLink(open: OpenClient, options: LinkOptions): Link {
  const { texts, isCluster, longestReplyMs } = options
  // Opening a connection takes several round trips, a reply one.
  const connectTimeoutMs = Math.min(
    MAX_CONNECT_TIMEOUT_MS,
    Math.max(MIN_CONNECT_TIMEOUT_MS, 2 * longestReplyMs),
  )
  const waiters = new Set<() => void>()
  let current: OwnClient | undefined
  let opening: OwnClient | undefined
  let openedAt = Number.NEGATIVE_INFINITY
  let lastReplyAt = 0
  let lastError: Error | undefined
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const openNext = AsyncResource.bind((): void => {
    if (isClosed || opening !== undefined) return
    clearTimeout(timer)
    openedAt = performance.now()
    const next = open({ texts, connectTimeoutMs, onLost: (error) => onLost(next, error) })
    opening = next
    const cancelTimer = startTimer(connectTimeoutMs, () => onFailure(next, connectTimeoutError()))
    next
      .connect()
      .then(
        () => onReady(next),
        (error) => onFailure(next, error),
      )
      .finally(cancelTimer)
  })

  function onReady(next: OwnClient): void {
    if (opening !== next) {
      next.close()
      return
    }
    const previous = current
    opening = undefined
    current = next
    failures = 0
    lastError = undefined
    // Its other nodes may still answer what they were sent.
    if (previous !== undefined) setTimeout(() => previous.close(), longestReplyMs).unref()
    letWaitersProceed()
  }

  function onFailure(next: OwnClient, error: Error): void {
    if (opening !== next) return
    const hint = isWithoutTls(next, error) ? ` ${TLS_HINT}` : ''
    lastError = hint === '' ? error : new Error(error.message + hint)
    opening = undefined
    next.close()
    if (current === undefined) openLater()
  }

  function onLost(lost: OwnClient, error: Error): void {
    if (current !== lost) return
    lastError = error
    current = undefined
    lost.close()
    if (opening === undefined) openLater()
  }

  function openLater(): void {
    if (isClosed) return
    failures += 1
    const delayMs = isReplyError(lastError)
      ? REFUSED_RETRY_MS
      : Math.min(MAX_RECONNECT_DELAY_MS, 25 * 2 ** Math.min(failures - 1, 10))
    clearTimeout(timer)
    // Holds the process open until `close`, as a connection does.
    timer = setTimeout(openNext, delayMs)
  }

  /** A client of a cluster stays in use until the next one is ready, because its other nodes may be well. */
  function refresh(): void {
    if (performance.now() - openedAt >= CLUSTER_REPLACE_INTERVAL_MS) openNext()
  }

  function replace(client: OwnClient): void {
    if (isCluster) refresh()
    if (isCluster || current !== client) return
    current = undefined
    client.close()
    openNext()
  }

  function letWaitersProceed(): void {
    for (const proceed of waiters) proceed()
    waiters.clear()
  }

  function use<T>(client: OwnClient, send: (client: OwnClient) => Promise<T>): Promise<T> {
    const reply = send(client)
    reply.then(
      () => {
        lastReplyAt = performance.now()
      },
      (error) => onError(client, error),
    )
    return reply
  }

  function onError(client: OwnClient, error: Error): void {
    if (!isReplyError(error)) return
    lastReplyAt = performance.now()
    if (WRONG_CONNECTION.test(error.message)) replace(client)
  }

  /** A command may open the connection to a node, which outlives the request that needs it first. */
  const useInCluster = AsyncResource.bind(async (client, send) => {
    try {
      return await use(client, send)
    } catch (error) {
      // The node has refused the login of its new connection, not the command.
      if (isReplyError(error) && NO_LOGIN.test(error.message)) throw new Error(error.message)
      throw error
    }
  }) as typeof use

  function unreachableError({ mayHaveRun }: CallState): NotConfirmed {
    if (isReplyError(lastError)) {
      const isDatabase = /^ERR .*\b(DB|database)\b/i.test(lastError.message)
      const what = isDatabase ? `database ${options.database}` : 'the login'
      return new NotConfirmed(
        `Redis refuses ${what}: ${errorText(lastError)}`,
        mayHaveRun,
        'server',
      )
    }
    const opened = opening?.isTlsUnanswered() ? TLS_HINT : ''
    const cause = lastError === undefined ? opened : errorText(lastError)
    const text = cause === '' ? '' : `: ${cause}`
    return new NotConfirmed(`Redis is unreachable${text}`, mayHaveRun, 'network')
  }

  return {
    current: () => current,
    untilReady(state) {
      if (isClosed) throw new NotConfirmed('the store is closed', state.mayHaveRun, 'closed')
      if (current !== undefined) return undefined
      if (openedAt === Number.NEGATIVE_INFINITY) openNext()
      // Calls that have timed out must leave nothing in memory, because an outage can be long.
      return new Promise((resolve, reject) => {
        const cancel = atDeadline(state, () => {
          waiters.delete(proceed)
          reject(unreachableError(state))
        })
        const proceed = (): void => {
          cancel()
          resolve()
        }
        waiters.add(proceed)
      })
    },
    use: isCluster ? useInCluster : use,
    reportTimeout(client, sentAt) {
      if (isCluster || lastReplyAt < sentAt) replace(client)
    },
    refresh,
    replace,
    close() {
      isClosed = true
      clearTimeout(timer)
      const clients = [current, opening]
      current = undefined
      opening = undefined
      for (const client of clients) client?.close()
      letWaitersProceed()
    },
  }
}

const connectTimeoutError = (): Error => new Error('the connection timed out')

const TLS_HINT = '(TLS got no answer: is this a port without TLS?)'
const TLS_ERROR = /before secure TLS connection|wrong version number|packet length too long|EPROTO/
const TIMEOUT = /timed out|timeout|ETIMEDOUT/i

/** Redis waits for the end of a line, so a TLS handshake with a port without TLS gets no reply. */
const isWithoutTls = (client: OwnClient, { message }: Error): boolean =>
  TLS_ERROR.test(message) || (client.isTlsUnanswered() && TIMEOUT.test(message))

/**
 * Sends the call once, as soon as the link is ready. If Redis does not have the script, sends it with its source.
 *
 * @throws NotConfirmed if there is no reply in time, or the error of the client.
 */
export async function sendScript(link: Link, call: RedisCall, state: CallState): Promise<unknown> {
  const readiness = link.untilReady(state)
  if (readiness !== undefined) await readiness
  state.isRepeated = state.mayHaveRun
  state.mayHaveRun = true
  if (call.sendsSource) return await send(link, commandOf('eval', call, state), state)
  try {
    return await send(link, commandOf('evalsha', call, state), state)
  } catch (error) {
    if (!isUnknownScript(error)) throw error
    if (isExpired(state)) {
      // This attempt has not run; an earlier one may have.
      state.mayHaveRun = state.isRepeated
      throw noReplyError(state)
    }
    return await send(link, commandOf('eval', call, state), state)
  }
}

/** Returns the command that runs the script of a call. */
export const commandOf = (
  command: ScriptCommand['command'],
  { script: { sha, source }, keys, args }: RedisCall,
  { deadline }: CallState,
): ScriptCommand => ({
  command,
  script: command === 'eval' ? source : sha,
  keys,
  args,
  timeoutMs: deadline - performance.now(),
})

function send(link: Link, command: ScriptCommand, state: CallState): Promise<unknown> {
  const client = link.current()
  if (client === undefined) throw new Error('the connection was lost')
  const sentAt = performance.now()
  const reply = link.use(client, ({ runScript }) => runScript(command))
  return untilDeadline(reply, state, () => link.reportTimeout(client, sentAt))
}

/** Runs scripts on a connection of the store's own, each within `timeoutMs`. */
export interface Connection {
  readonly link: Link
  readonly clients: OwnClients
  readonly health: HealthWatch
  /**
   * Runs a call, and repeats it if its reply was lost. A repeated call must have no further effect.
   *
   * @throws NotConfirmed if there was no reply in time, or an Error with the error reply of Redis.
   */
  run(call: RedisCall, state?: CallState): Promise<unknown>
  /** Returns the nodes that accept writes. @throws NotConfirmed if they are not known in time. */
  masters(): Promise<readonly RedisNode[]>
  /** Records in `health` how the promise settles, and returns the promise. */
  track<T>(reply: Promise<T>): Promise<T>
  close(): void
}

export function openConnection(clients: OwnClients, timeoutMs: number): Connection {
  const link = openLink(clients.open, { ...clients, longestReplyMs: timeoutMs, texts: 'buffers' })
  const health = watchHealth()

  const recordFailure = (error: unknown): void => {
    health.down(error instanceof NotConfirmed ? error.code : 'server')
  }
  const track = <T>(reply: Promise<T>): Promise<T> => {
    reply.then(health.up, recordFailure)
    return reply
  }

  async function nodesNow(state: CallState): Promise<readonly RedisNode[]> {
    await link.untilReady(state)
    return (await link.current()?.masters()) ?? []
  }

  /** The node on whatever client is in use when a command is sent. */
  const lasting = ({ address, isBehindSentinel }: RedisNode): RedisNode => ({
    address,
    isBehindSentinel,
    async command(...words) {
      const state = startRedisCall(timeoutMs)
      const nodes = await nodesNow(state)
      const node = nodes.find((each) => each.address === address)
      const client = link.current()
      if (node === undefined || client === undefined) throw new Error('the node has gone')
      const sentAt = performance.now()
      const reply = link.use(client, () => node.command(...words))
      return untilDeadline(reply, state, () => link.reportTimeout(client, sentAt))
    },
  })

  async function masters(state: CallState): Promise<readonly RedisNode[]> {
    return (await nodesNow(state)).map(lasting)
  }

  return {
    link,
    clients,
    health,
    track,
    run(call, state = startRedisCall(timeoutMs)) {
      return track(retryUntilDeadline(state, () => sendScript(link, call, state)))
    },
    masters() {
      const state = startRedisCall(timeoutMs)
      return track(retryUntilDeadline(state, () => untilDeadline(masters(state), state)))
    },
    close() {
      link.close()
      health.down('closed')
    },
  }
}
