import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { startTimer } from '../../../base/deadline.js'
import type { StoreFault } from '../../store-health.js'

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

export const isExpired = ({ deadline }: CallState): boolean => performance.now() >= deadline

/** The error if Redis has not confirmed an operation: the store cannot be reached. */
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

interface ReplyError extends Error {
  readonly name: 'ReplyError'
}

/** Whether Redis sent the error, so that the command had no effect. */
export const isReplyError = (error: unknown): error is ReplyError =>
  error instanceof Error && error.name === 'ReplyError'

/**
 * Returns the message of a client's error without anything that was sent. ioredis attaches the command,
 * and Redis quotes the arguments of unknown commands, including passwords.
 */
export const errorText = ({ message }: Error): string =>
  message.replace(/,? with args beginning with:.*$/s, '')

const noReplyError = ({ mayHaveRun }: CallState): NotConfirmed =>
  new NotConfirmed('Redis gave no reply in time', mayHaveRun)

/** @throws NotConfirmed at the deadline. */
export function untilDeadline<T>(work: Promise<T>, state: CallState): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = atDeadline(state, () => {
      // The timer may fire slightly early, and nothing may be sent after the rejection.
      state.deadline = Number.NEGATIVE_INFINITY
      reject(noReplyError(state))
    })
    work.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error) => {
        cancel()
        reject(error)
      },
    )
  })
}

/**
 * Calls `expire` at the deadline, with a time: all data that arrived before it has been read. Returns a
 * function that cancels the timer, which does not keep the process alive.
 */
export function atDeadline(
  { deadline }: Pick<CallState, 'deadline'>,
  expire: (readUntil: number) => void,
): () => void {
  // The timer may fire slightly early.
  return startTimer(Math.max(0, deadline - performance.now()), (firedAt) =>
    expire(Math.max(deadline, firedAt)),
  )
}

/** The delay before a retry while the client reconnects. */
const RETRY_DELAY_MS = 10

/**
 * Repeats `tryOnce` until it succeeds, or until `pause` throws; `pause` resolves when the next attempt
 * may begin. A repeated `tryOnce` must have no further effect.
 */
export async function retryUntilDeadline<T>(
  state: CallState,
  tryOnce: () => Promise<T>,
  pause: (error: unknown, state: CallState) => Promise<unknown> = untilReconnected,
): Promise<T> {
  for (;;) {
    try {
      return await tryOnce()
    } catch (error) {
      await pause(error, state)
    }
  }
}

/**
 * Pauses before a retry if a connection broke; any other error ends the retries.
 *
 * @throws NotConfirmed if there was no reply in time, or an Error with the error reply of Redis.
 */
async function untilReconnected(error: unknown, state: CallState): Promise<void> {
  if (error instanceof NotConfirmed) throw error
  if (isReplyError(error)) throw new Error(errorText(error))
  await untilDeadline(sleep(RETRY_DELAY_MS, undefined, { ref: false }), state)
}

/** A script with its key and arguments. */
export interface RedisCall {
  readonly script: Script
  readonly key: string
  readonly args: readonly (string | Buffer)[]
}

/** Sends scripts on one connection. */
export interface ScriptSender<C> {
  /** Returns `undefined` if it is ready. @throws NotConfirmed if it is not ready in time. */
  untilReady(state: CallState): Promise<void> | undefined
  /** Sends the call with the script's digest; the commands of one tick are sent together. */
  sendDigest(call: C): Promise<unknown>
  /** Sends the call with the script's source. */
  sendSource(call: C): Promise<unknown>
  /** Whether it also sends the source after the deadline, so that Redis has the script for the next call. */
  readonly sendsLate?: boolean
}

export const isUnknownScript = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('NOSCRIPT')

/**
 * Sends the call once the sender is ready. If Redis does not have the script, sends it with its source.
 *
 * @throws NotConfirmed if there is no reply in time, or the error of the client.
 */
export async function sendScript<C>(
  sender: ScriptSender<C>,
  call: C,
  state: CallState,
): Promise<unknown> {
  const readiness = sender.untilReady(state)
  if (readiness !== undefined) await readiness
  state.isRepeated = state.mayHaveRun
  state.mayHaveRun = true
  try {
    return await untilDeadline(sender.sendDigest(call), state)
  } catch (error) {
    if (!isUnknownScript(error)) throw error
    if (isExpired(state) && sender.sendsLate !== true) {
      // This attempt has not run; an earlier one may have.
      state.mayHaveRun = state.isRepeated
      throw noReplyError(state)
    }
    return await untilDeadline(sender.sendSource(call), state)
  }
}

/** A Lua script, which Redis runs atomically. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export const script = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})
