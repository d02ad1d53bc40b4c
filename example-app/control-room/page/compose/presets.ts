import type { CallOrder } from '../../protocol.js'
import { CERTIFICATE_READ, GOOD_READ, GOOD_WRITE, KEY_READ } from './good-calls.js'

export interface Preset {
  readonly title: string
  /** What is sent, and what to look at. */
  readonly about: string
  /** Sent one after another; the last one stays in the form. */
  readonly orders: readonly [CallOrder, ...CallOrder[]]
}

/** A genuine signature under a payload that it was not made for. */
const TAMPERED = "another token's payload"

/** What a newcomer tries first. Each is whole: it needs nothing to have been sent before. */
export const PRESETS: readonly Preset[] = [
  {
    title: 'A good read',
    about: 'Billing may read orders: the handler answers.',
    orders: [GOOD_READ],
  },
  {
    title: 'A good write',
    about: 'A POST with a fresh token and a new idempotency key: one more order.',
    orders: [GOOD_WRITE],
  },
  {
    title: 'The same write again',
    about:
      'A write and its retry: the second gets the stored answer, and nothing is written twice.',
    orders: [GOOD_WRITE, { ...GOOD_WRITE, idempotencyKey: 'same' }],
  },
  {
    title: 'A tampered token',
    about: 'A genuine signature under another payload.',
    orders: [{ ...GOOD_READ, hostileToken: TAMPERED }],
  },
  {
    title: 'A permission missing',
    about: 'Reporting may only read, whatever its token claims, and tries to write.',
    orders: [{ ...GOOD_WRITE, caller: 'reporting' }],
  },
  {
    title: 'Over mTLS',
    about: 'Billing calls over TLS with its client certificate (mTLS): the handler answers.',
    orders: [CERTIFICATE_READ],
  },
  {
    title: 'A token used twice',
    about: 'Two writes with one token: each write uses its token up.',
    orders: [GOOD_WRITE, { ...GOOD_WRITE, isTokenReused: true }],
  },
  {
    title: 'A stolen token',
    about: 'Billing sends a token that is bound to its key, then a thief sends it without the key.',
    orders: [KEY_READ, { ...KEY_READ, isTokenReused: true, binding: 'none' }],
  },
  {
    title: 'Another body',
    about: 'Two different writes under one idempotency key: a mistake of the caller.',
    orders: [GOOD_WRITE, { ...GOOD_WRITE, idempotencyKey: 'same', body: 'another' }],
  },
]
