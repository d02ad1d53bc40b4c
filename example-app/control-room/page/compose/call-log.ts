import { batch, computed, signal } from '@preact/signals'
import type { CallOrder, CallResult, ManyCallsResult } from '../../protocol.js'
import { act, textOf } from '../api.js'

export type HowMany = 'one' | 'hundred' | 'twenty-at-once'

export type CallEnd =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'answered'; readonly result: CallResult }
  | { readonly kind: 'counted'; readonly result: ManyCallsResult }
  /** The room did not send it, or could not tell what came of it. */
  | { readonly kind: 'not-sent'; readonly why: string }

/** A call that was sent from this page. */
export interface LoggedCall {
  readonly number: number
  readonly order: CallOrder
  readonly howMany: HowMany
  readonly end: CallEnd
}

const CALLS_KEPT = 20

/** The last calls of this page, the newest first. */
export const calls = signal<readonly LoggedCall[]>([])

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

async function endOf(order: CallOrder, howMany: HowMany): Promise<CallEnd> {
  try {
    if (howMany === 'one') return { kind: 'answered', result: await act('call', order) }
    return { kind: 'counted', result: await act('many-calls', { order, how: howMany }) }
  } catch (error) {
    return { kind: 'not-sent', why: textOf(error) }
  }
}
