import type { RecordView, Resolution, Store } from 'express-service-auth'
import { ActionError, UnavailableError } from '../ports.js'
import type { Settled, SettleOrder } from '../protocol.js'
import { storedAnswer } from './stored-answer.js'

export interface SettleOptions {
  readonly store: Pick<Store, 'inspect' | 'resolve'>
  /** What makes answers; default: its source. */
  readonly program: string | undefined
}

/**
 * Ends a write whose outcome nobody knows, where it is still what the visitor has seen.
 * @throws {ActionError} (as a rejection) when the order is wrong; an `UnavailableError` when the store does
 * not answer
 */
export async function settleWrite(
  order: SettleOrder,
  { store, program }: SettleOptions,
): Promise<Settled> {
  const { record, fence } = order
  const given = order.as === 'freed' ? undefined : answerOf(order)
  const view = await reaching(() => store.inspect(record))
  const obstacle = obstacleOf(view, fence)
  if (obstacle !== undefined) return { isSettled: false, why: obstacle }
  const as: Resolution =
    given === undefined
      ? { type: 'freed' }
      : { type: 'finished', result: await storedAnswer(given, program) }
  const isSettled = await reaching(() => store.resolve(record, fence, as))
  return isSettled ? { isSettled } : { isSettled, why: NOT_SO }
}

const NOT_SO = 'The record cannot be settled so, or has changed meanwhile: look at it again.'

/** Of the states in which there is nothing to settle. */
const SETTLED_STATES: Readonly<Partial<Record<RecordView['state'], string>>> = {
  running: 'Its run holds its lease: wait until it answers, or until the lease has ended.',
  finished: 'It has its answer already, and retries get it.',
  freed: 'It is free already, and the next retry runs.',
}

function obstacleOf(view: RecordView | undefined, fence: number): string | undefined {
  if (view === undefined) return 'The store has no such record.'
  if (view.fence === fence) return SETTLED_STATES[view.state]
  return `The record has changed: its fence is ${view.fence}, not ${fence}. Look at it again.`
}

/** A wrong order is a `TypeError`. With any other error the store did not answer. */
function reaching<T>(ask: () => Promise<T>): Promise<T> {
  return ask().catch((error: Error) => {
    if (error instanceof TypeError) throw new ActionError(error.message, { cause: error })
    const text = `The store does not answer: ${error.message}. Ask again.`
    throw new UnavailableError(text, { cause: error })
  })
}

const MIN_STATUS = 200
const MAX_STATUS = 999
const WITHOUT_BODY: readonly number[] = [204, 304]

function answerOf({ status, body = '' }: SettleOrder): { status: number; body: string } {
  if (
    status === undefined ||
    !Number.isInteger(status) ||
    status < MIN_STATUS ||
    status > MAX_STATUS
  ) {
    throw new ActionError(`the status of the answer must be from ${MIN_STATUS} to ${MAX_STATUS}`)
  }
  if (body === '') return { status, body }
  if (WITHOUT_BODY.includes(status)) {
    throw new ActionError(`an answer with the status ${status} has no body`)
  }
  if (!isJson(body)) throw new ActionError('the body of the answer must be JSON')
  return { status, body }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
