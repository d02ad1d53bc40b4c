import { computed, signal } from '@preact/signals'
import type { CallAnswer, CallOrder, CallResult, ReceiverName } from '../../protocol.js'
import { act } from '../api.js'

const SENT_SHOWN = 8

/** A write that was sent from here, or its retry. */
export interface SentWrite {
  readonly number: number
  readonly kind: 'write' | 'retry'
  readonly receiver: ReceiverName
  /** Absent while it waits. */
  readonly result?: CallResult
  /** Why it could not be sent. */
  readonly failure?: string
}

/** The newest first. */
export const sentWrites = signal<readonly SentWrite[]>([])

/** Whether there is something to retry. */
export const isSent = computed(() => sentWrites.value.length > 0)

const ORDER: Omit<CallOrder, 'receiver' | 'idempotencyKey'> = {
  caller: 'billing',
  audience: 'orders',
  permissions: ['orders:read', 'orders:write'],
  method: 'POST',
  isTokenReused: false,
  body: 'usual',
}

let lastNumber = 0

/** Sends a write with a new key, or the retry: a new token, but the same key and body. */
export async function sendWrite(receiver: ReceiverName, kind: SentWrite['kind']): Promise<void> {
  lastNumber += 1
  const sent: SentWrite = { number: lastNumber, kind, receiver }
  sentWrites.value = [sent, ...sentWrites.value].slice(0, SENT_SHOWN)
  const idempotencyKey = kind === 'write' ? 'new' : 'same'
  try {
    put({ ...sent, result: await act('call', { ...ORDER, receiver, idempotencyKey }) })
  } catch (error) {
    put({ ...sent, failure: error instanceof Error ? error.message : String(error) })
  }
}

function put(sent: SentWrite): void {
  sentWrites.value = sentWrites.value.map((one) => (one.number === sent.number ? sent : one))
}

/** What came of it, as the end of a sentence. */
export function answerInWords({ result, failure }: SentWrite): string {
  if (failure !== undefined) return failure
  if (!result) return 'waits for its answer'
  const { answer, operator } = result
  const told = operator.reason ? ` (${operator.reason})` : ''
  return `${callerSaw(answer)}${told}`
}

const callerSaw = (answer: CallAnswer): string =>
  'status' in answer ? `answered ${answer.status}` : answer.failure

/** What came of those that have been answered, the newest first. */
export const sentResults = computed(() =>
  sentWrites.value.flatMap(({ result }) => (result ? [result] : [])),
)
