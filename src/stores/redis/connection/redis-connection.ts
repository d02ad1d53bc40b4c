import { AsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../../../base/deadline.js'
import { type HealthWatch, type StoreFault, watchHealth } from '../../store-health.js'
import {
  errorText,
  isLoginError,
  isReplyError,
  type OpenClient,
  type OwnClient,
  type OwnClients,
  type RedisCall,
  type RedisNode,
} from './client.js'

/** The error if Redis has not confirmed an operation. */
export class NotConfirmed extends Error {
  override readonly name: string = 'NotConfirmed'
  /** Whether the operation was sent, so that it may have taken effect or still may. */
  readonly mayHaveRun: boolean
  readonly code: StoreFault

  constructor(message: string, mayHaveRun: boolean, code: StoreFault = 'timeout') {
    super(message)
    this.mayHaveRun = mayHaveRun
    this.code = code
  }
}

/** The state of one Redis call, including its retries. */
export interface CallState {
  /** The time of `performance.now` at which the operation times out; `-Infinity` once the timer has fired. */
  deadline: number
  /** Whether the operation was sent, so that it may take effect. */
  mayHaveRun: boolean
  /** Whether the operation was sent again after a lost reply. */
  isRepeated: boolean
}

export const startRedisCall = (timeoutMs: number): CallState => ({
  deadline: performance.now() + timeoutMs,
  mayHaveRun: false,
  isRepeated: false,
})

const leftMs = ({ deadline }: CallState): number => deadline - performance.now()

const isExpired = (state: CallState): boolean => leftMs(state) <= 0

const noReplyError = ({ mayHaveRun }: CallState): NotConfirmed =>
  new NotConfirmed('Redis gave no reply in time', mayHaveRun)

/** Rejects at the deadline with what `onTimeout` returns. @throws NotConfirmed */
export function untilDeadline<T>(
  work: Promise<T>,
  state: CallState,
  onTimeout: () => Error = () => noReplyError(state),
): Promise<T> {
  function timeoutError(): Error {
    // The timer may fire slightly early, and nothing may be sent after the rejection.
    state.deadline = Number.NEGATIVE_INFINITY
    return onTimeout()
  }
  return withDeadline({ timeoutMs: Math.max(0, leftMs(state)), timeoutError }, work)
}

const RETRY_DELAY_MS = 25
/** With less time, a refused call is not sent again: that would only make its outcome uncertain. */
const MIN_RETRY_MS = 50
/** Errors of a server that may accept the call a moment later. */
const TRANSIENT = /\b(LOADING|BUSY|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

/**
 * Repeats `tryOnce` while connections break, or the server cannot accept the call yet; any other error ends the
 * retries. A repeated `tryOnce` must have no further effect.
 *
 * @throws NotConfirmed if there was no reply in time, or with the error reply of Redis.
 */
export async function retryUntilDeadline<T>(
  state: CallState,
  tryOnce: () => Promise<T>,
): Promise<T> {
  let refusal: Error | undefined
  const refused = (error: Error): NotConfirmed =>
    new NotConfirmed(errorText(error), state.mayHaveRun, 'server')
  for (let isRetry = false; ; isRetry = true) {
    try {
      if (isRetry) await untilDeadline(sleep(RETRY_DELAY_MS, undefined, { ref: false }), state)
      return await tryOnce()
    } catch (error) {
      if (error instanceof NotConfirmed) {
        throw error.code === 'timeout' && refusal !== undefined ? refused(refusal) : error
      }
      if (isReplyError(error)) {
        refusal = error
        // This attempt had no effect; an earlier one may have.
        state.mayHaveRun = state.isRepeated
        const isTransient = isLoginError(error) || TRANSIENT.test(error.message)
        if (!isTransient || leftMs(state) < MIN_RETRY_MS) throw refused(error)
      }
    }
  }
}

const MIN_CONNECT_TIMEOUT_MS = 500
const MAX_CONNECT_TIMEOUT_MS = 10_000
const MIN_REOPEN_DELAY_MS = 25
const MAX_REOPEN_DELAY_MS = 250
/** A client of a cluster is replaced at most this often, because its other nodes may be well. */
const CLUSTER_REPLACE_INTERVAL_MS = 1000

/**
 * A client of the package's own, replaced by a new one once its connection is lost or silent. It connects on first
 * use, and each time in the async context in which the link was opened. Until it is closed it holds the process open.
 */
export interface Link {
  /** The client in use; `undefined` while there is no connection. */
  current(): OwnClient | undefined
  /** Resolves with the client in use, once there is one. @throws NotConfirmed if there is none in time. */
  ready(state: CallState): Promise<OwnClient>
  /** Sends something on the client in use, until the deadline: a client that is silent by then is replaced. */
  exchange<T>(state: CallState, send: (client: OwnClient) => Promise<T>): Promise<T>
  /** Replaces the client of a cluster, which then asks again for its nodes. */
  refresh(): void
  close(): void
}

interface LinkOptions extends Pick<OwnClients, 'isCluster' | 'usesTls'> {
  /** The longest time limit of a reply, in milliseconds. */
  readonly longestReplyMs: number
  /** Milliseconds after which a call without a reply is sent again, if it has more time. Default: none. */
  readonly tryMs?: number | undefined
  /** Whether the client itself tells when it is lost by its silence. */
  readonly tellsSilence?: boolean | undefined
}

export function openLink(
  open: OpenClient,
  {
    isCluster,
    usesTls,
    longestReplyMs,
    tryMs = Number.POSITIVE_INFINITY,
    tellsSilence = false,
  }: LinkOptions,
): Link {
  // Opening a connection takes several round trips, a reply one.
  const connectTimeoutMs = Math.min(
    MAX_CONNECT_TIMEOUT_MS,
    Math.max(MIN_CONNECT_TIMEOUT_MS, 2 * longestReplyMs),
  )
  const ending = new AbortController()
  const { signal } = ending
  let current: OwnClient | undefined
  let opening: Promise<void> | undefined
  let openedAt = Number.NEGATIVE_INFINITY
  /** How many clients were opened since the last reply. */
  let attempts = 0
  let lastReplyAt = 0
  let lastError: Error | undefined

  /** Tries until there is a client. If the next client fails while there is still one, the next call that needs it tries again. */
  function startOpening(): Promise<void> {
    opening ??= openOnce()
      .catch(() => {})
      .finally(() => {
        opening = undefined
        if (current === undefined && !signal.aborted) void startOpening()
      })
    return opening
  }

  const openOnce = AsyncResource.bind(async (): Promise<void> => {
    const delayMs =
      attempts === 0
        ? 0
        : Math.min(MAX_REOPEN_DELAY_MS, MIN_REOPEN_DELAY_MS * 2 ** Math.min(attempts - 1, 10))
    const waitMs = openedAt + delayMs - performance.now()
    if (waitMs > 0) await sleep(waitMs, undefined, { signal })
    signal.throwIfAborted()
    openedAt = performance.now()
    attempts += 1
    let next: OwnClient | undefined
    let lossError: Error | undefined
    const limit = {
      timeoutMs: connectTimeoutMs,
      timeoutError: connectTimeoutError,
      signal,
      onLateValue: (late: OwnClient) => late.close(),
    }
    function onLost(error: Error): void {
      lossError = error
      if (next !== undefined) lose(next, error)
    }
    try {
      const opened = await withDeadline(limit, ({ signal }) =>
        open({ connectTimeoutMs, signal, onLost }),
      )
      next = opened
      if (lossError !== undefined) throw lossError
      take(opened)
    } catch (error) {
      lastError = error as Error
      next?.close()
    }
  })

  function take(next: OwnClient): void {
    const previous = current
    current = next
    lastError = undefined
    // Its other nodes may still answer what they were sent.
    if (previous !== undefined) setTimeout(() => previous.close(), longestReplyMs).unref()
  }

  function lose(client: OwnClient, error: Error | undefined): void {
    if (current !== client) return
    lastError = error
    current = undefined
    client.close()
    void startOpening()
  }

  /** A client of a cluster stays in use until the next one is ready, because its other nodes may be well. */
  function refresh(): void {
    if (performance.now() - openedAt >= CLUSTER_REPLACE_INTERVAL_MS) void startOpening()
  }

  function replace(client: OwnClient, cause?: Error): void {
    if (isCluster) refresh()
    else lose(client, cause)
  }

  async function use<T>(client: OwnClient, send: (client: OwnClient) => Promise<T>): Promise<T> {
    try {
      const reply = await send(client)
      lastReplyAt = performance.now()
      attempts = 0
      return reply
    } catch (error) {
      if (!isReplyError(error)) throw error
      lastReplyAt = performance.now()
      // A new connection may get another answer: from the new master, or with a new password.
      if (isLoginError(error) || error.message.startsWith('READONLY')) replace(client, error)
      throw error
    }
  }

  function unreachableError({ mayHaveRun }: CallState): NotConfirmed {
    if (isReplyError(lastError)) {
      const text = `Redis refuses the connection: ${errorText(lastError)}`
      return new NotConfirmed(text, mayHaveRun, 'server')
    }
    const causes = [
      'Redis is unreachable',
      ...(lastError === undefined ? [] : [errorText(lastError)]),
      ...(usesTls ? ['the client uses TLS: is this a port without TLS?'] : []),
    ]
    return new NotConfirmed(causes.join(': '), mayHaveRun, 'network')
  }

  async function ready(state: CallState): Promise<OwnClient> {
    for (;;) {
      if (signal.aborted) throw new NotConfirmed('the store is closed', state.mayHaveRun, 'closed')
      if (current !== undefined) return current
      await untilDeadline(startOpening(), state, () => unreachableError(state))
    }
  }

  async function exchange<T>(
    state: CallState,
    send: (client: OwnClient) => Promise<T>,
  ): Promise<T> {
    const client = current ?? (await ready(state))
    const sentAt = performance.now()
    const isLastTry = leftMs(state) <= tryMs
    const limit = isLastTry ? state : { ...state, deadline: sentAt + tryMs }
    return untilDeadline(useHere(client, send), limit, () => {
      if (isCluster || (!tellsSilence && lastReplyAt < sentAt)) replace(client)
      return isLastTry ? noReplyError(state) : new Error('there is no reply yet')
    })
  }

  // In a cluster, a command may open the connection to a node, which outlives the request that needs it first.
  const useHere = isCluster ? (AsyncResource.bind(use) as typeof use) : use

  return {
    current: () => current,
    ready,
    exchange,
    refresh,
    close() {
      ending.abort(new Error('the store is closed'))
      current?.close()
      current = undefined
    },
  }
}

const connectTimeoutError = (): Error => new Error('the connection timed out')

/**
 * Sends the call once, as soon as the link is ready. If Redis does not have the script, sends it with its source.
 *
 * @throws NotConfirmed if there is no reply in time, or the error of the client.
 */
export async function sendScript(link: Link, call: RedisCall, state: CallState): Promise<unknown> {
  const run = (client: OwnClient): Promise<unknown> => {
    state.isRepeated = state.mayHaveRun
    state.mayHaveRun = true
    return client.runScript(call, leftMs(state))
  }
  try {
    return await link.exchange(state, run)
  } catch (error) {
    if (!isUnknownScript(error) || isExpired(state)) throw error
    const withSource = { ...call, sendsSource: true }
    return await link.exchange(state, (client) => client.runScript(withSource, leftMs(state)))
  }
}

const isUnknownScript = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('NOSCRIPT')

/** Runs scripts on a connection of the store's own, each within `timeoutMs`. */
export interface Connection {
  readonly link: Link
  readonly clients: OwnClients
  readonly health: HealthWatch
  /**
   * Runs a call, and repeats it if its reply was lost. A repeated call must have no further effect.
   *
   * @throws NotConfirmed if there was no reply in time, or with the error reply of Redis.
   */
  run(call: RedisCall, state?: CallState): Promise<unknown>
  /** Returns the nodes that accept writes. Their commands have the same time limit. @throws NotConfirmed */
  masters(): Promise<readonly RedisNode[]>
  /** Records in `health` how the promise settles, and returns the promise. */
  track<T>(reply: Promise<T>): Promise<T>
  close(): void
}

export function openConnection(clients: OwnClients, timeoutMs: number, tryMs?: number): Connection {
  const link = openLink(clients.open, { ...clients, longestReplyMs: timeoutMs, tryMs })
  const health = watchHealth()

  function track<T>(reply: Promise<T>): Promise<T> {
    reply.then(health.up, (error) => {
      health.down(error instanceof NotConfirmed ? error.code : 'server')
    })
    return reply
  }

  function ask<T>(send: (client: OwnClient) => Promise<T>): Promise<T> {
    const state = startRedisCall(timeoutMs)
    return track(retryUntilDeadline(state, () => link.exchange(state, send)))
  }

  /** The node on whatever client is in use when a command is sent. */
  const lasting = ({ address, isBehindSentinel }: RedisNode): RedisNode => ({
    address,
    isBehindSentinel,
    command: (...words) =>
      ask(async (client) => {
        const node = (await client.masters()).find((each) => each.address === address)
        if (node === undefined) throw new Error('the node has gone')
        return node.command(...words)
      }),
  })

  return {
    link,
    clients,
    health,
    track,
    run: (call, state = startRedisCall(timeoutMs)) =>
      track(retryUntilDeadline(state, () => sendScript(link, call, state))),
    masters: async () => (await ask((client) => client.masters())).map(lasting),
    close() {
      link.close()
      health.down('closed')
    },
  }
}
