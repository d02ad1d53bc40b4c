import { signal } from '@preact/signals'
import type { CallOrder } from '../../protocol.js'
import { GOOD_READ } from './good-calls.js'

/** The call in the form. */
export const draft = signal<CallOrder>(GOOD_READ)

export function change(fields: Partial<CallOrder>): void {
  draft.value = { ...draft.value, ...fields }
}

/** A write has a key unless the visitor leaves it out; a read has none. */
export function changeMethod(method: CallOrder['method']): void {
  change({ method, idempotencyKey: method === 'POST' ? 'new' : 'none' })
}

export function changeHostileToken(name: string | undefined): void {
  const { hostileToken: _, ...rest } = draft.value
  draft.value = name === undefined ? rest : { ...rest, hostileToken: name }
}
