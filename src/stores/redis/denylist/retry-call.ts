import { setTimeout as sleep } from 'node:timers/promises'
import { heldOpen } from '../connection/keep-alive.js'
import { type DenylistConnection, type Question, Unanswered } from './denylist-connection.js'

/** After this time without a reply the connection is replaced, and the call sent again. */
const TRY_TIMEOUT_MS = 500
const RETRY_DELAY_MS = 50
/** A retry with less time than this would only make the outcome uncertain. */
export const MIN_TRY_MS = 100
/** Errors of a server that may accept the call a moment later. */
const PASSING = /\b(LOADING|BUSY|NOREPLICAS|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/

/**
 * Retries a call until Redis replies or the time limit passes. A repeated call must have no further
 * effect.
 */
export type AskRepeatedly = (
  question: Omit<Question, 'timeoutMs'>,
  timeoutMs: number,
) => Promise<unknown>

/** The returned function throws `Unanswered` with the outcome of all attempts. */
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
