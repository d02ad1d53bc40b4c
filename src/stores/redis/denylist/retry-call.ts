import { setTimeout as sleep } from 'node:timers/promises'
import { heldOpen } from '../connection/keep-alive.js'
import { type DenylistConnection, type Question, Unanswered } from './denylist-connection.js'

/** A connection that is replaced after this time without a reply. The question is then sent again. */
const TRY_TIMEOUT_MS = 500
const RETRY_DELAY_MS = 50
/** A try without the time for an answer would only blur what is known. */
export const MIN_TRY_MS = 100
/** Answers of a server that may take the question a moment later. */
const PASSING = /\b(LOADING|BUSY|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

/**
 * Sends a question until Redis answers it or the time is over. The question must have no further effect
 * the second time.
 */
export type AskRepeatedly = (
  question: Omit<Question, 'timeoutMs'>,
  timeoutMs: number,
) => Promise<unknown>

/** The function throws `Unanswered` with the outcome of all tries. */
export function createRetries(connection: DenylistConnection): AskRepeatedly {
  async function persist(
    question: Omit<Question, 'timeoutMs'>,
    timeoutMs: number,
  ): Promise<unknown> {
    const deadline = performance.now() + timeoutMs
    let leftMs = timeoutMs
    let mayHaveRun = false
    for (;;) {
      try {
        return await connection.ask({ ...question, timeoutMs: Math.min(TRY_TIMEOUT_MS, leftMs) })
      } catch (error) {
        const { code, message, mayHaveRun: mayHaveRunNow } = error as Unanswered
        mayHaveRun ||= mayHaveRunNow
        const isOver = performance.now() + RETRY_DELAY_MS + MIN_TRY_MS >= deadline
        const isFinal = code === 'closed' || (code === 'server' && !PASSING.test(message))
        if (isOver || isFinal) throw new Unanswered(code, message, mayHaveRun)
      }
      await sleep(RETRY_DELAY_MS)
      leftMs = Math.max(MIN_TRY_MS, deadline - performance.now())
    }
  }

  return (question, timeoutMs) => heldOpen(() => persist(question, timeoutMs))
}
