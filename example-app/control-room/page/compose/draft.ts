import { signal } from '@preact/signals'
import type { CallOrder } from '../../protocol.js'

export const GOOD_READ: CallOrder = {
  receiver: 'orders-1',
  caller: 'billing',
  audience: 'orders',
  permissions: ['orders:read'],
  method: 'GET',
  isTokenReused: false,
  idempotencyKey: 'none',
  body: 'usual',
}

export const GOOD_WRITE: CallOrder = {
  ...GOOD_READ,
  permissions: ['orders:write'],
  method: 'POST',
  idempotencyKey: 'new',
}

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
