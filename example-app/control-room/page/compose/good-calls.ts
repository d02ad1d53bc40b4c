import type { CallOrder } from '../../protocol.js'

/** Calls that are accepted. */
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

/** With a token that nobody else can use. */
export const KEY_READ: CallOrder = { ...GOOD_READ, binding: 'key' }

export const CERTIFICATE_READ: CallOrder = { ...GOOD_READ, binding: 'certificate' }

export const GOOD_WRITE: CallOrder = {
  ...GOOD_READ,
  permissions: ['orders:write'],
  method: 'POST',
  idempotencyKey: 'new',
}
