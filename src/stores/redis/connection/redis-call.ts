import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { startTimer } from '../../../base/deadline.js'
import type { StoreFault } from '../../store-health.js'

/** A Lua script, which Redis runs atomically. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export const script = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})

/** A script with its keys and arguments. */
export interface RedisCall {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  /** Whether to send the source even if Redis has the script, because `EVAL` needs another right than `EVALSHA`. */
  readonly sendsSource?: boolean | undefined
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
export function errorText({ message }: Error): string {
  const text = message.replace(/,? with args beginning with:.*$/s, '')
  return UNAUTHENTICATED.test(text) ? `NOAUTH Authentication required (${text})` : text
}

/** To a client without a login, Redis replies NOAUTH only to short commands; its reply to long ones has this word. */
const UNAUTHENTICATED = /\bunauthenticated\b/

export const noReplyError = ({ mayHaveRun }: CallState): NotConfirmed =>
  new NotConfirmed('Redis gave no reply in time', mayHaveRun)

/** Calls `onTimeout` and rejects at the deadline. @throws NotConfirmed */
export function untilDeadline<T>(
  work: Promise<T>,
  state: CallState,
  onTimeout: () => void = () => {},
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = atDeadline(state, () => {
      // The timer may fire slightly early, and nothing may be sent after the rejection.
      state.deadline = Number.NEGATIVE_INFINITY
      reject(noReplyError(state))
      onTimeout()
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
 * Calls `expire` at the deadline, once all data has been read that arrived before it. Returns a function that
 * cancels the timer, which does not keep the process alive.
 */
export const atDeadline = ({ deadline }: CallState, expire: () => void): (() => void) =>
  startTimer(Math.max(0, deadline - performance.now()), expire)

/** The delay before a retry while the client reconnects. */
const RETRY_DELAY_MS = 10

/**
 * Repeats `tryOnce` while connections break; any other error ends the retries. A repeated `tryOnce` must have no
 * further effect.
 *
 * @throws NotConfirmed if there was no reply in time, or an Error with the error reply of Redis.
 */
export async function retryUntilDeadline<T>(
  state: CallState,
  tryOnce: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await tryOnce()
    } catch (error) {
      if (error instanceof NotConfirmed) throw error
      if (isReplyError(error)) throw new Error(errorText(error))
      await untilDeadline(sleep(RETRY_DELAY_MS, undefined, { ref: false }), state)
    }
  }
}

export const isUnknownScript = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('NOSCRIPT')
