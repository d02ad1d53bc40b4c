import type { ReceiverName } from './names.js'
import type { CallResult, ManyCallsResult, Settled, TourStep } from './results.js'

/*
 * What the page asks for: POST <key>/api/<name>, answered with JSON: with the result, or, where that takes
 * longer than a second, with 202 and a ticket, by which the page asks again.
 */

/** The name by which it asks again; what it sends is the ticket as it came. */
export const UNFINISHED = 'unfinished'

/** A call that a visitor has composed. */
export interface CallOrder {
  readonly receiver: ReceiverName
  /** `sub` of the token. */
  readonly caller: string
  /** `aud` of the token. */
  readonly audience: string
  readonly permissions: readonly string[]
  readonly method: 'GET' | 'POST'
  /** Sends the token of the last call of this caller again. */
  readonly isTokenReused: boolean
  /**
   * What a new token is bound to, and what the call shows of it: a proof of the key, or the certificate.
   * Without it, a bound token that is sent again is a stolen one. Default: nothing.
   */
  readonly binding?: 'none' | 'key' | 'certificate'
  /** The header of a POST: none, a new one, or that of the last POST. */
  readonly idempotencyKey: 'none' | 'new' | 'same'
  readonly body: 'usual' | 'another'
  /** A name of the catalogue of hostile tokens, in place of the token. */
  readonly hostileToken?: string
  /** Which page sends it: its last token and key are its own, whatever other pages send. */
  readonly page?: string
}

/** What the page can do; the value is what it sends and what it gets. */
export interface Actions {
  call: [CallOrder, CallResult]
  /** A hundred calls one after another, or twenty equal ones at once, half to each receiver. */
  'many-calls': [{ order: CallOrder; how: 'hundred' | 'twenty-at-once' }, ManyCallsResult]
  /** Calls in the background, accepted and refused ones, until it is set to 0. */
  'background-load': [{ callsPerSecond: number }, object]
  'rotate-key': [object, { kid: string }]
  'remove-key': [{ kid: string }, object]
  /** How long the core waits before it answers with its key set; 0 ends it. */
  'slow-core': [{ milliseconds: number }, object]
  'take-core-down': [{ isDown: boolean }, object]
  /** The next write of the receiver stops in its handler, after its key was reserved. */
  'hold-next-write': [{ receiver: ReceiverName; isHolding: boolean }, object]
  /** Lets the held writes of a receiver go on. */
  'let-go': [{ receiver: ReceiverName }, object]
  /** SIGKILL. */
  'kill-receiver': [{ receiver: ReceiverName }, object]
  'start-receiver': [{ receiver: ReceiverName }, object]
  /** Ends a write whose outcome nobody knows, as `service-auth settle` does. */
  settle: [SettleOrder, Settled]
  deny: [DenyOrder, object]
  allow: [DeniedThing, object]
  /** Plays a step of the tour. */
  'tour-step': [{ index: number }, TourStep]
}

export type ActionName = keyof Actions

export interface SettleOrder {
  /** The digest that names the record. */
  readonly record: string
  readonly fence: number
  /** `freed`: nothing has happened. `done`: it has, and retries get this status and JSON body. */
  readonly as: 'freed' | 'done'
  readonly status?: number
  readonly body?: string
}

export interface DeniedThing {
  readonly kind: 'caller' | 'key' | 'token'
  /** The `sub`, the key id or the `jti`. */
  readonly value: string
}

export interface DenyOrder extends DeniedThing {
  readonly reason: string
  /** Absent: no end. */
  readonly seconds?: number
}
