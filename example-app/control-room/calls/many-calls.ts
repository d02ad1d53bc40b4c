import type { CallOrder, ManyCallsResult, ReceiverName } from '../protocol.js'
import { RECEIVERS } from '../protocol.js'
import { compose } from './compose.js'
import {
  type CallParts,
  type Credential,
  credentialFor,
  type SentCall,
  sendReady,
} from './send-call.js'
import { type CountedCall, tally } from './tally.js'

const CALLS_IN_A_ROW = 100
const CALLS_AT_ONCE = 20
/** A receiver that says nothing must not be waited for a hundred times. */
const ROW_LIMIT_MS = 30_000

/** Sends many calls; waits for their reports once, at the end. */
export async function sendMany(
  order: CallOrder,
  how: 'hundred' | 'twenty-at-once',
  parts: CallParts,
): Promise<ManyCallsResult> {
  const startedAt = performance.now()
  const ordersBefore = parts.receivers.orders()
  const sent = await (how === 'hundred' ? oneAfterAnother(order, parts) : allAtOnce(order, parts))
  const milliseconds = performance.now() - startedAt
  const counted = await Promise.all(sent.map(countedCall))
  return {
    calls: sent.length,
    milliseconds,
    answers: tally(counted),
    newOrders: parts.receivers.orders() - ordersBefore,
  }
}

async function oneAfterAnother(order: CallOrder, parts: CallParts): Promise<SentCall[]> {
  const deadline = performance.now() + ROW_LIMIT_MS
  const sent: SentCall[] = []
  while (sent.length < CALLS_IN_A_ROW && performance.now() < deadline) {
    const composed = compose(order, parts.remembered.keyFor(order))
    const credential = await credentialFor(order, parts)
    sent.push(await sendReady({ receiver: order.receiver, composed, credential }, parts))
  }
  return sent
}

/** Equal calls, half to each receiver: reads with one token, writes with one key and fresh tokens. */
async function allAtOnce(order: CallOrder, parts: CallParts): Promise<SentCall[]> {
  const composed = compose(order, parts.remembered.keyFor(order))
  const credentials = await credentialsFor(order, parts)
  return Promise.all(
    credentials.map((credential, index) => {
      const receiver = RECEIVERS[index % RECEIVERS.length] as ReceiverName
      return sendReady({ receiver, composed, credential }, parts)
    }),
  )
}

async function credentialsFor(order: CallOrder, parts: CallParts): Promise<Credential[]> {
  const one = await credentialFor(order, parts)
  if (order.method === 'GET') return Array.from({ length: CALLS_AT_ONCE }, () => one)
  const others = Array.from({ length: CALLS_AT_ONCE - 1 }, () => credentialFor(order, parts))
  return [one, ...(await Promise.all(others))]
}

async function countedCall(sent: SentCall): Promise<CountedCall> {
  const { answer, isReplay } = sent
  const { reason } = await sent.view()
  if ('status' in answer) return { status: answer.status, reason, isReplay }
  return { status: undefined, reason: answer.failure, isReplay }
}
