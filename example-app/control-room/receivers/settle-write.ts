import type { Resolution, Store } from 'express-service-auth'
import { ActionError } from '../ports.js'
import type { SettleOrder } from '../protocol.js'
import { explaining } from './explaining.js'
import { storedAnswer } from './stored-answer.js'

export interface SettleOptions {
  readonly store: Pick<Store, 'inspect' | 'resolve'>
  /** What makes answers; default: its source. */
  readonly program: string | undefined
}

/**
 * Ends a write whose outcome nobody knows. `false` when it is not what the visitor has seen any more.
 * @throws {ActionError} (as a rejection) when the order is wrong, or the store out of reach
 */
export async function settleWrite(
  order: SettleOrder,
  { store, program }: SettleOptions,
): Promise<boolean> {
  const given = order.as === 'freed' ? undefined : answerOf(order)
  return explaining(async () => {
    const view = await store.inspect(order.record)
    if (view?.fence !== order.fence) return false
    const as: Resolution =
      given === undefined
        ? { type: 'freed' }
        : { type: 'finished', result: await storedAnswer(given, program) }
    return store.resolve(order.record, order.fence, as)
  })
}

const LEAST_STATUS = 200
const MOST_STATUS = 999
const WITHOUT_BODY: readonly number[] = [204, 304]

function answerOf({ status, body = '' }: SettleOrder): { status: number; body: string } {
  if (
    status === undefined ||
    !Number.isInteger(status) ||
    status < LEAST_STATUS ||
    status > MOST_STATUS
  ) {
    throw new ActionError(`the status of the answer must be from ${LEAST_STATUS} to ${MOST_STATUS}`)
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
