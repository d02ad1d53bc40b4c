import { AsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OwnClients } from '../connection/client.js'
import {
  errorText,
  isReplyError,
  NotConfirmed,
  type Script,
  startRedisCall,
} from '../connection/redis-call.js'
import { openLink, sendScript } from '../connection/redis-connection.js'

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
  /** Calls a script once. @throws NotConfirmed */
  runScript(call: TimedCall): Promise<unknown>
  close(): void
}

interface ConnectionOptions {
  readonly keys: readonly string[]
  /** The longest time limit of a call, in milliseconds. */
  readonly timeoutMs: number
}

export function openDenylistConnection(
  clients: OwnClients,
  { keys, timeoutMs: longestReplyMs }: ConnectionOptions,
): DenylistConnection {
  const link = openLink(clients.open, { ...clients, longestReplyMs, texts: 'strings' })

  async function runScript({ args = [], timeoutMs, ...call }: TimedCall): Promise<unknown> {
    const state = startRedisCall(timeoutMs)
    try {
      return await sendScript(link, { ...call, keys, args }, state)
    } catch (error) {
      if (error instanceof NotConfirmed) throw error
      const text = errorText(error as Error)
      if (isReplyError(error)) throw new NotConfirmed(text, false, 'server')
      throw new NotConfirmed(text, state.mayHaveRun, 'network')
    }
  }

  return { runScript: AsyncResource.bind(runScript), close: link.close }
}

/** If a call gets no reply for this time, it is sent again. */
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
  const deadline = performance.now() + timeoutMs
  let leftMs = timeoutMs
  let mayHaveRun = false

  async function tryUntilDeadline(): Promise<unknown> {
    for (;;) {
      try {
        return await connection.runScript({ ...call, timeoutMs: Math.min(TRY_TIMEOUT_MS, leftMs) })
      } catch (error) {
        const { code, message, mayHaveRun: mayHaveRunNow } = error as NotConfirmed
        mayHaveRun ||= mayHaveRunNow
        const isOver = performance.now() + RETRY_DELAY_MS + MIN_TRY_MS >= deadline
        const isFinal = code === 'closed' || (code === 'server' && !TRANSIENT.test(message))
        if (isOver || isFinal) throw new NotConfirmed(message, mayHaveRun, code)
      }
      await sleep(RETRY_DELAY_MS)
      leftMs = Math.max(MIN_TRY_MS, deadline - performance.now())
    }
  }

  return keepProcessAlive(tryUntilDeadline)
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
