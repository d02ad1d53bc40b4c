import type { Store, StoreEvent } from 'express-service-auth'
import type {
  DeniedState,
  DeniedThing,
  DenyOrder,
  Messages,
  Outcome,
  ReceiverName,
  ReceiverState,
  RoomEvent,
  RoomState,
  Settled,
  SettleOrder,
  WriteState,
} from './protocol.js'

/** Thrown by an action for what its visitor can put right: one clear line, answered with 400. */
export class ActionError extends Error {
  override readonly name: string = 'ActionError'
}

/**
 * Thrown by an action when something that it needs gives no answer or cannot serve: the store, the core or a
 * process. Answered with 503, because the visitor has done nothing wrong and may ask again.
 */
export class UnavailableError extends ActionError {
  override readonly name = 'UnavailableError'
}

/** An event without its number, which the room gives. */
export type NewEvent = Omit<RoomEvent, 'number'>

/** A request that a receiver has answered, or whose connection has ended. */
export interface EndedRequest {
  readonly receiver: ReceiverName
  readonly call?: string
  readonly outcome: Outcome
  readonly milliseconds: number
}

/** What a receiver, a process of its own, sends every 50 ms if there is anything. */
export interface ReceiverReport {
  readonly receiver: ReceiverName
  readonly events: readonly NewEvent[]
  readonly requests: readonly EndedRequest[]
  readonly storeCalls: readonly StoreEvent[]
  /** Since the last time. */
  readonly cache: { readonly hits: number; readonly misses: number }
}

/** The two receivers on one store: real processes, that can be killed. */
export interface Receivers {
  states(): readonly ReceiverState[]
  urlOf(receiver: ReceiverName): string
  /** Its address with TLS, and the authority of its certificate in PEM. */
  tlsOf(receiver: ReceiverName): { readonly url: string; readonly ca: string }
  /** Orders on the books, which all receivers share. */
  orders(): number
  readonly storeName: string
  /** The room's own hand on the store that the receivers share. */
  readonly store: Store
  writes(): readonly WriteState[]
  denied(): readonly DeniedState[]
  holdNextWrite(receiver: ReceiverName, isHolding: boolean): Promise<void>
  letGo(receiver: ReceiverName): Promise<void>
  /** Resolves when the process is gone. */
  kill(receiver: ReceiverName): Promise<void>
  /** Resolves when it serves. */
  start(receiver: ReceiverName): Promise<void>
  settle(order: SettleOrder): Promise<Settled>
  deny(order: DenyOrder): Promise<void>
  allow(thing: DeniedThing): Promise<void>
  close(): Promise<void>
}

/** What the room's server serves. */
export interface Room {
  state(): RoomState
  /** Runs an action; `input` is what came as JSON, unchecked. Rejects with `ActionError`. */
  act(name: string, input: unknown): Promise<unknown>
  /** Sends a message of each type at once, then what is new; returns a function that ends it. */
  subscribe(send: (type: keyof Messages, message: object) => void): () => void
  close(): Promise<void>
}
