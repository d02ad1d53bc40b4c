import { setTimeout as sleep } from 'node:timers/promises'
import type { StoreFault } from '../../store-health.js'
import type { Script } from './script.js'

/** One Redis operation, with its retries. */
export interface Attempt {
  /** The time of `performance.now` at which the operation times out. */
  readonly deadline: number
  /** Whether it was sent, so that it may take effect. */
  mayHaveRun: boolean
  /** Whether it was sent again after a lost reply. */
  isRepeated: boolean
}

export const attemptFor = (timeoutMs: number): Attempt => ({
  deadline: performance.now() + timeoutMs,
  mayHaveRun: false,
  isRepeated: false,
})

export const isExpired = ({ deadline }: Attempt): boolean => performance.now() >= deadline

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

/** Whether Redis sent the error, so that the command had no effect. */
export const isReplyError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError'

/**
 * Returns the message of a client's error without anything that was sent. ioredis attaches the command,
 * and Redis quotes the arguments of unknown commands, including passwords.
 */
export const faultText = ({ message }: Error): string =>
  message.replace(/,? with args beginning with:.*$/s, '')

const noReplyError = ({ mayHaveRun }: Attempt): NotConfirmed =>
  new NotConfirmed('Redis gave no reply in time', mayHaveRun)

/** @throws NotConfirmed at the deadline of the attempt. */
export function within<T>(work: Promise<T>, attempt: Attempt): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = atDeadline(attempt, () => reject(noReplyError(attempt)))
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
 * Calls `expire` at the deadline, after the data that had arrived by then has been read, because a busy
 * event loop is not a silent server. `expire` gets the time up to which all data has been read. Returns a
 * function that cancels the timer. The timer never holds the process open.
 */
export function atDeadline(
  { deadline }: Pick<Attempt, 'deadline'>,
  expire: (readUntil: number) => void,
): () => void {
  let isCancelled = false
  const expireUnlessCancelled = (readUntil: number): void => {
    if (!isCancelled) expire(readUntil)
  }
  // A timer may fire slightly early.
  const onTimer = (): void => {
    setImmediate(expireUnlessCancelled, Math.max(deadline, performance.now()))
  }
  const timer = setTimeout(onTimer, Math.max(0, deadline - performance.now()))
  timer.unref()
  return () => {
    isCancelled = true
    clearTimeout(timer)
  }
}

/** The delay between two attempts while the client reconnects. */
const RETRY_DELAY_MS = 10

/**
 * Repeats `tryOnce` until it succeeds, or until `pause` throws; `pause` resolves when the next attempt
 * may begin. A repeated `tryOnce` must have no further effect.
 */
export async function persist<T>(
  attempt: Attempt,
  tryOnce: () => Promise<T>,
  pause: (error: unknown, attempt: Attempt) => Promise<unknown> = untilReconnected,
): Promise<T> {
  for (;;) {
    try {
      return await tryOnce()
    } catch (error) {
      await pause(error, attempt)
    }
  }
}

/**
 * Allows a retry if a connection broke.
 *
 * @throws NotConfirmed if there was no reply in time, or an Error with the error reply of Redis.
 */
async function untilReconnected(error: unknown, attempt: Attempt): Promise<void> {
  if (error instanceof NotConfirmed) throw error
  if (isReplyError(error)) throw new Error(faultText(error))
  await within(sleep(RETRY_DELAY_MS, undefined, { ref: false }), attempt)
}

/** A script with its key and arguments. */
export interface Call {
  readonly script: Script
  readonly key: string
  readonly args: readonly (string | Buffer)[]
}

/** Sends scripts on one connection. */
export interface ScriptSender<C> {
  /** Returns `undefined` if it is ready. @throws NotConfirmed if it is not ready in time. */
  untilReady(attempt: Attempt): Promise<void> | undefined
  /** Sends the call with the script's digest; the commands of one tick are sent together. */
  evaluateKnown(call: C): Promise<unknown>
  /** Sends the call with the script's source. */
  evaluateSource(call: C): Promise<unknown>
}

export const isUnknownScript = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('NOSCRIPT')

/**
 * Sends the call once the sender is ready. If Redis does not have the script, sends it with its source.
 *
 * @throws NotConfirmed if there is no reply in time, or the error of ioredis.
 */
export async function evaluate<C>(
  sender: ScriptSender<C>,
  call: C,
  attempt: Attempt,
): Promise<unknown> {
  const becomingReady = sender.untilReady(attempt)
  if (becomingReady !== undefined) await becomingReady
  attempt.isRepeated = attempt.mayHaveRun
  attempt.mayHaveRun = true
  try {
    return await within(sender.evaluateKnown(call), attempt)
  } catch (error) {
    if (!isUnknownScript(error) || isExpired(attempt)) throw error
    return await within(sender.evaluateSource(call), attempt)
  }
}
