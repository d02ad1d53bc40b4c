import { setTimeout as sleep } from 'node:timers/promises'
import type { StoreFault } from '../../store-health.js'

/** One thing that is asked of Redis, however often it has to be sent. */
export interface Attempt {
  /** A moment of `performance.now`, after which nobody waits any more. */
  readonly deadline: number
  /** Whether it was sent, and may yet take effect. */
  mayHaveRun: boolean
  /** Whether it was sent again, because the first reply was lost. */
  isRepeated: boolean
}

export const attemptFor = (timeoutMs: number): Attempt => ({
  deadline: performance.now() + timeoutMs,
  mayHaveRun: false,
  isRepeated: false,
})

export const isOver = ({ deadline }: Attempt): boolean => performance.now() >= deadline

/** Redis has not confirmed what it was asked: the store is out of reach. */
export class NotConfirmed extends Error {
  override readonly name: string = 'NotConfirmed'
  /** Whether it was asked, so that it may have happened or may happen yet. */
  readonly mayHaveRun: boolean
  readonly code: StoreFault

  constructor(message: string, mayHaveRun: boolean, code: StoreFault = 'timeout') {
    super(message)
    this.mayHaveRun = mayHaveRun
    this.code = code
  }
}

/** An error that Redis sent: nothing has come of the command. */
export const isServersAnswer = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError'

/**
 * What a client's error says, and nothing of what was sent: ioredis attaches the command, and Redis
 * quotes the arguments of one that it does not know, passwords included.
 */
export const faultText = ({ message }: Error): string =>
  message.replace(/,? with args beginning with:.*$/s, '')

const noReply = ({ mayHaveRun }: Attempt): NotConfirmed =>
  new NotConfirmed('Redis gave no reply in time', mayHaveRun)

/** @throws NotConfirmed at the attempt's deadline. */
export function within<T>(work: Promise<T>, attempt: Attempt): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const callOff = atDeadline(attempt, () => reject(noReply(attempt)))
    work.then(
      (value) => {
        callOff()
        resolve(value)
      },
      (error) => {
        callOff()
        reject(error)
      },
    )
  })
}

/**
 * Calls `expire` at the deadline, once what has arrived by then has been read: a busy event loop is
 * not a silent server. `expire` gets the moment of which that is true. Returns what calls it off. The
 * timer never holds the process open.
 */
export function atDeadline(
  { deadline }: Pick<Attempt, 'deadline'>,
  expire: (struckAt: number) => void,
): () => void {
  let isOff = false
  const expireUnlessOff = (struckAt: number): void => {
    if (!isOff) expire(struckAt)
  }
  // A timer may strike a moment too early.
  const strike = (): void => {
    setImmediate(expireUnlessOff, Math.max(deadline, performance.now()))
  }
  const timer = setTimeout(strike, Math.max(0, deadline - performance.now()))
  timer.unref()
  return () => {
    isOff = true
    clearTimeout(timer)
  }
}

/** Between two tries, while the connection comes back. */
const RETRY_DELAY_MS = 10

/**
 * Tries again for as long as there is time when a connection broke. What is tried must have no
 * further effect the second time.
 *
 * @throws NotConfirmed when there was no reply in time, or an Error with what Redis said.
 */
export async function persist<T>(attempt: Attempt, tryOnce: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await tryOnce()
    } catch (error) {
      if (error instanceof NotConfirmed) throw error
      if (isServersAnswer(error)) throw new Error(faultText(error))
      await within(sleep(RETRY_DELAY_MS, undefined, { ref: false }), attempt)
    }
  }
}
