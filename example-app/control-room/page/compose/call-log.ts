import { batch, computed, signal } from '@preact/signals'
import type { CallOrder, CallResult, ManyCallsResult, OperatorView } from '../../protocol.js'
import { ActionFailure, act, textOf } from '../api.js'

export type HowMany = 'one' | 'hundred' | 'twenty-at-once'

export type CallEnd =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'answered'; readonly result: CallResult }
  | { readonly kind: 'counted'; readonly result: ManyCallsResult }
  | { readonly kind: 'not-sent' | 'unknown'; readonly why: string }

/** A call that was sent from this page. */
export interface LoggedCall {
  readonly number: number
  readonly order: CallOrder
  readonly howMany: HowMany
  readonly end: CallEnd
}

const CALLS_KEPT = 12

/** The last calls of this page, the newest first. */
export const calls = signal<readonly LoggedCall[]>([])

/** Nothing, if the receiver has logged nothing: it may not have got the call. */
export const seenInWords = ({ reason, outcome, events }: OperatorView): string =>
  events.length === 0 ? 'nothing' : (reason ?? outcome)

const shownNumber = signal(0)

/** The call that the two views show: the newest, until the visitor goes back to another. */
export const shownCall = computed(() =>
  calls.value.find(({ number }) => number === shownNumber.value),
)

export function show(number: number): void {
  shownNumber.value = number
}

let sent = 0

/** Sends what the visitor has composed; resolves when it has ended, however it did. */
export async function send(order: CallOrder, howMany: HowMany = 'one'): Promise<CallEnd> {
  sent += 1
  const number = sent
  const call: LoggedCall = { number, order, howMany, end: { kind: 'waiting' } }
  batch(() => {
    calls.value = [call, ...calls.value].slice(0, CALLS_KEPT)
    show(number)
  })
  const end = await endOf(order, howMany)
  calls.value = calls.value.map((each) => (each.number === number ? { ...call, end } : each))
  return end
}

/** Another in each tab, and after a reload. */
const page = crypto.randomUUID()

async function endOf(composed: CallOrder, howMany: HowMany): Promise<CallEnd> {
  const order = { ...composed, page }
  try {
    if (howMany === 'one') return { kind: 'answered', result: await act('call', order) }
    return { kind: 'counted', result: await act('many-calls', { order, how: howMany }) }
  } catch (error) {
    // Of a hundred, some may have been sent before one could not be.
    const isKnown = error instanceof ActionFailure && error.isRefused && howMany !== 'hundred'
    return { kind: isKnown ? 'not-sent' : 'unknown', why: textOf(error) }
  }
}
