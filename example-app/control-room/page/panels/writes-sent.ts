import { computed } from '@preact/signals'
import type { CallAnswer, CallOrder, ReceiverName } from '../../protocol.js'
import { reveal } from '../components/reveal.js'
import { type CallEnd, calls, type LoggedCall, send } from '../compose/call-log.js'
import { GOOD_WRITE } from '../compose/good-calls.js'

/** Single writes that were sent from this page, the newest first. */
export const sentWrites = computed(() =>
  calls.value.filter(({ order, howMany }) => order.method === 'POST' && howMany === 'one'),
)

/** The last write with a key: one without would be another write when it is sent again. */
export const retriable = computed(() =>
  sentWrites.value.find(({ order }) => order.idempotencyKey !== 'none'),
)

export async function sendWrite(receiver: ReceiverName): Promise<void> {
  reveal('writes-sent')
  await send({ ...GOOD_WRITE, receiver })
}

/** Sends a write again, to any receiver: a new token, but the same key and body. */
export async function sendRetry(order: CallOrder, receiver: ReceiverName): Promise<void> {
  reveal('writes-sent')
  await send({ ...order, receiver, idempotencyKey: 'same', isTokenReused: false })
}

export const isRetry = ({ order }: LoggedCall): boolean => order.idempotencyKey === 'same'

/** What came of it, as the end of a sentence. */
export function endInWords(end: CallEnd): string {
  switch (end.kind) {
    case 'waiting':
      return 'waits for its answer'
    case 'not-sent':
    case 'unknown':
      return end.why
    case 'counted':
      return ''
    case 'answered': {
      const { answer, operator } = end.result
      return operator.reason ? `${inWords(answer)} (${operator.reason})` : inWords(answer)
    }
  }
}

const inWords = (answer: CallAnswer): string =>
  'status' in answer ? `answered ${answer.status}` : answer.failure
