import { ActionError, type EndedRequest } from '../ports.js'
import type { CallResult, ManyCallsResult, RoomEvent } from '../protocol.js'
import { createCallEvents } from './call-events.js'
import { compose } from './compose.js'
import { sendMany } from './many-calls.js'
import { readCallOrder, readManyCalls } from './read-order.js'
import { createRememberedByPage } from './remembered.js'
import { type CallParts, sendCall } from './send-call.js'

export type CallersOptions = Pick<CallParts, 'mint' | 'receivers' | 'catalogue'> &
  Partial<Pick<CallParts, 'clock' | 'answerLimitMs'>>

/** Who calls the receivers, as visitors compose it. Inputs come unchecked. */
export interface Callers {
  /** Takes the reports of receivers, for which the results wait. */
  receive(events: readonly RoomEvent[], requests: readonly EndedRequest[]): void
  call(input: unknown): Promise<CallResult>
  manyCalls(input: unknown): Promise<ManyCallsResult>
}

/** A write that is held in its handler answers when it is let go; nobody waits for it forever. */
const ANSWER_LIMIT_MS = 60_000
/** Of many, each is waited for less long. */
const ANSWER_LIMIT_OF_MANY_MS = 5000

export function openCallers(options: CallersOptions): Callers {
  const parts: Omit<CallParts, 'remembered'> = {
    clock: Date.now,
    answerLimitMs: ANSWER_LIMIT_MS,
    events: createCallEvents(),
    ...options,
  }
  const rememberedOf = createRememberedByPage()
  const answerLimitMs = Math.min(parts.answerLimitMs, ANSWER_LIMIT_OF_MANY_MS)
  let areManyUnderWay = false
  return {
    receive: parts.events.receive,
    async call(input) {
      const order = readCallOrder(input)
      const remembered = rememberedOf(order.page)
      return sendCall(order, compose(order, remembered.keyFor(order)), { ...parts, remembered })
    },
    async manyCalls(input) {
      const { order, how } = readManyCalls(input)
      if (areManyUnderWay) throw new ActionError('Many calls are under way already')
      areManyUnderWay = true
      try {
        const remembered = rememberedOf(order.page)
        return await sendMany(order, how, { ...parts, remembered, answerLimitMs })
      } finally {
        areManyUnderWay = false
      }
    },
  }
}
