import { ActionError, type EndedRequest } from '../ports.js'
import type { CallResult, ManyCallsResult, RoomEvent } from '../protocol.js'
import { createCallEvents } from './call-events.js'
import { compose } from './compose.js'
import { sendMany } from './many-calls.js'
import { readCallOrder, readManyCalls } from './read-order.js'
import { createRemembered } from './remembered.js'
import { type CallParts, sendCall } from './send-call.js'

export type CallersOptions = Pick<CallParts, 'mint' | 'receivers' | 'catalogue'> &
  Partial<Pick<CallParts, 'clock' | 'answerLimitMs'>>

/** Who calls the receivers, as visitors compose it. Inputs come unchecked. */
export interface Callers {
  /** Takes in what receivers have told; their results wait for it. */
  hear(events: readonly RoomEvent[], requests: readonly EndedRequest[]): void
  call(input: unknown): Promise<CallResult>
  manyCalls(input: unknown): Promise<ManyCallsResult>
}

/** A write that is held in its handler answers when it is let go; nobody waits for it for ever. */
const ANSWER_LIMIT_MS = 60_000
/** Of many, each is waited for less long. */
const ANSWER_LIMIT_OF_MANY_MS = 5000

export function openCallers(options: CallersOptions): Callers {
  const parts: CallParts = {
    clock: Date.now,
    answerLimitMs: ANSWER_LIMIT_MS,
    remembered: createRemembered(),
    events: createCallEvents(),
    ...options,
  }
  const answerLimitMs = Math.min(parts.answerLimitMs, ANSWER_LIMIT_OF_MANY_MS)
  let areManyUnderWay = false
  return {
    hear: parts.events.hear,
    async call(input) {
      const order = readCallOrder(input)
      return sendCall(order, compose(order, parts.remembered.keyFor(order)), parts)
    },
    async manyCalls(input) {
      const { order, how } = readManyCalls(input)
      if (areManyUnderWay) throw new ActionError('Many calls are under way already')
      areManyUnderWay = true
      try {
        return await sendMany(order, how, { ...parts, answerLimitMs })
      } finally {
        areManyUnderWay = false
      }
    },
  }
}
