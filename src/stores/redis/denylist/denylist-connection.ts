import { AsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientFactory, DedicatedClient } from '../clients/redis-client.js'
import { DENYLIST_CONNECT_TIMEOUT_MS } from '../clients/time-limits.js'
import { connectionErrorText } from '../connection/connection-error.js'
import type { Script } from '../connection/redis-call.js'
import {
  errorText,
  isReplyError,
  NotConfirmed,
  retryUntilDeadline,
  type ScriptSender,
  sendScript,
  startRedisCall,
  untilDeadline,
} from '../connection/redis-call.js'

/** A denylist script with its arguments. */
export interface ScriptCall {
  readonly script: Script
  readonly args?: readonly string[]
  /** Whether to send the source even if Redis has the script, because `EVAL` needs another right than `EVALSHA`. */
  readonly sendsSource?: boolean
}

/** A call with the time limit for its reply, in milliseconds. */
interface TimedCall extends ScriptCall {
  readonly timeoutMs: number
}

/** A connection for the scripts of a denylist, opened on demand. */
export interface DenylistConnection {
  /**
   * Calls a script once. Closes the connection if the call fails.
   *
   * @throws NotConfirmed
   */
  runScript(call: TimedCall): Promise<unknown>
  close(): void
}

interface ConnectionOptions {
  readonly keys: readonly string[]
  /** The longest time limit of a call, in milliseconds. */
  readonly timeoutMs: number
}

/** To a client without a login, Redis replies NOAUTH only to short commands; its reply to long ones has this word. */
const UNAUTHENTICATED = /\bunauthenticated\b/

const replyErrorText = (error: Error): string =>
  UNAUTHENTICATED.test(error.message)
    ? `NOAUTH Authentication required (${errorText(error)})`
    : errorText(error)

export function openDenylistConnection(
  clients: ClientFactory,
  { keys, timeoutMs }: ConnectionOptions,
): DenylistConnection {
  const openClient = clients.forDenylist(timeoutMs)
  let client: DedicatedClient | undefined
  let connecting: Promise<DedicatedClient> | undefined
  let isClosed = false

  async function connect(): Promise<DedicatedClient> {
    if (isClosed) throw new NotConfirmed('the denylist is closed', false, 'closed')
    const opened = openClient()
    client = opened
    const state = startRedisCall(DENYLIST_CONNECT_TIMEOUT_MS)
    try {
      await untilDeadline(opened.connect(), state)
      return opened
    } catch (error) {
      const cause = causeOf(error, opened)
      const text = connectionErrorText(opened, cause instanceof Error ? cause : undefined)
      closeClient(opened)
      throw notConfirmed(cause, { mayHaveRun: false, text })
    }
  }

  function connected(): Promise<DedicatedClient> {
    if (connecting !== undefined) return connecting
    if (client?.isReady()) return Promise.resolve(client)
    if (client !== undefined) closeClient(client)
    const opening = connect().finally(() => (connecting = undefined))
    connecting = opening
    return opening
  }

  function closeClient(failed: DedicatedClient): void {
    // If many calls failed on the same connection, the first of them has closed it already.
    if (client !== failed) return
    client = undefined
    failed.close()
  }

  async function runScript({ timeoutMs, ...call }: TimedCall): Promise<unknown> {
    const ready = await connected()
    const state = startRedisCall(timeoutMs)
    try {
      return await sendScript(createSender(ready, keys), call, state)
    } catch (error) {
      closeClient(ready)
      throw notConfirmed(causeOf(error, ready), state)
    }
  }

  /** Prefers the last error of the client: that of a pending call says only that the connection was closed. */
  const causeOf = (error: unknown, failed: DedicatedClient): unknown =>
    isReplyError(error) ? error : (failed.lastError() ?? error)

  return {
    runScript: AsyncResource.bind(runScript),
    close() {
      isClosed = true
      if (client !== undefined) closeClient(client)
    },
  }

  function notConfirmed(
    error: unknown,
    { mayHaveRun, text }: { readonly mayHaveRun: boolean; readonly text?: string },
  ): NotConfirmed {
    if (isClosed) return new NotConfirmed('the denylist is closed', mayHaveRun, 'closed')
    if (isReplyError(error)) return new NotConfirmed(text ?? replyErrorText(error), false, 'server')
    const code = error instanceof NotConfirmed ? 'timeout' : 'network'
    return new NotConfirmed(text ?? errorText(error as Error), mayHaveRun, code)
  }
}

/** Sends scripts with the keys of the denylist on a client that is connected. */
function createSender(client: DedicatedClient, keys: readonly string[]): ScriptSender<ScriptCall> {
  const sendSource = ({ script, args = [] }: ScriptCall): Promise<unknown> =>
    client.runScript({ command: 'eval', script: script.source, keys, args, texts: 'strings' })
  return {
    untilReady: () => undefined,
    sendDigest(call) {
      const { script, args = [], sendsSource } = call
      if (sendsSource) return sendSource(call)
      return client.runScript({
        command: 'evalsha',
        script: script.sha,
        keys,
        args,
        texts: 'strings',
      })
    },
    sendSource,
    sendsLate: true,
  }
}

/** If a call gets no reply for this time, its connection is replaced and the call is sent again. */
const TRY_TIMEOUT_MS = 500
const RETRY_DELAY_MS = 50
/** A retry with less time than this would only make the outcome uncertain. */
const MIN_TRY_MS = 100
/** Errors of a server that may accept the call a moment later. */
const TRANSIENT = /\b(LOADING|BUSY|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

/**
 * Repeats a call until Redis replies or the time limit passes. A repeated call must have no further effect.
 *
 * @throws NotConfirmed with the outcome of all attempts.
 */
export function retryScript(
  connection: DenylistConnection,
  call: ScriptCall,
  timeoutMs: number,
): Promise<unknown> {
  const state = startRedisCall(timeoutMs)
  let leftMs = timeoutMs

  const tryOnce = (): Promise<unknown> =>
    connection.runScript({ ...call, timeoutMs: Math.min(TRY_TIMEOUT_MS, leftMs) })

  async function pause(error: unknown): Promise<void> {
    const { code, message, mayHaveRun } = error as NotConfirmed
    state.mayHaveRun ||= mayHaveRun
    const isOver = performance.now() + RETRY_DELAY_MS + MIN_TRY_MS >= state.deadline
    const isFinal = code === 'closed' || (code === 'server' && !TRANSIENT.test(message))
    if (isOver || isFinal) throw new NotConfirmed(message, state.mayHaveRun, code)
    await sleep(RETRY_DELAY_MS)
    leftMs = Math.max(MIN_TRY_MS, state.deadline - performance.now())
  }

  return keepProcessAlive(() => retryUntilDeadline(state, tryOnce, pause))
}

/** Any time would do, because the callback of the timer does nothing. */
const INTERVAL_MS = 60_000

/**
 * Holds the process open until the work is done. Between two attempts there is no connection, so a
 * program without other pending work would exit without a result.
 */
export async function keepProcessAlive<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, INTERVAL_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
