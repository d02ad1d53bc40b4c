import type {
  DenylistHealth,
  KeySetHealth,
  RecordView,
  StoreHealth,
  TokenCacheHealth,
} from 'express-service-auth'
import type { DeniedThing } from './actions.js'
import type { Outcome, ReceiverName } from './names.js'
import type { TourStep } from './results.js'

/** `state`: sent when the page connects and whenever something has changed, at most four times a second. */
export interface RoomState {
  readonly now: number
  /** Another after a restart of the server. */
  readonly startedAt: number
  readonly core: CoreState
  readonly store: { readonly name: string; readonly isShared: true } & StoreHealth
  readonly receivers: readonly ReceiverState[]
  /** Orders on the books. */
  readonly orders: number
  readonly writes: readonly WriteState[]
  readonly denied: readonly DeniedState[]
  /** Exact, since the start. */
  readonly totals: Readonly<Record<Outcome, number>>
  readonly backgroundLoad: number
  readonly tour: readonly TourStep[]
}

export interface CoreState {
  readonly url: string
  readonly isDown: boolean
  readonly slowByMs: number
  readonly keySetRequests: number
  readonly keys: readonly CoreKey[]
}

export interface CoreKey {
  readonly kid: string
  /** `catalogue`: published so that hostile tokens can be well signed. */
  readonly kind: 'dynamic' | 'static' | 'catalogue'
  readonly createdAt: number
  readonly isSigning: boolean
}

export interface ReceiverState {
  readonly name: ReceiverName
  readonly url: string
  readonly pid?: number
  readonly phase: 'starting' | 'ready' | 'killed'
  readonly isHoldingNextWrite: boolean
  /** Writes that wait in their handlers. */
  readonly heldWrites: number
  readonly keySet?: KeySetHealth
  readonly denylist?: DenylistHealth
  readonly store?: StoreHealth
  readonly tokenCache?: TokenCacheHealth
  /** The states of its key set in the last five minutes, in order. */
  readonly keySetLine: readonly { readonly since: number; readonly state: KeySetHealth['state'] }[]
  readonly keySetFetches: { readonly fetched: number; readonly failed: number }
  /** When tokens with unknown key ids last were kept from causing another fetch. */
  readonly budgetExhaustedAt?: number
}

export interface WriteState {
  /** The digest that names the record. */
  readonly record: string
  readonly caller: string
  /** Who has run, or tried to run it, last. */
  readonly receiver: ReceiverName
  readonly seenAt: number
  /** As read from the store at `readAt`; absent when the record is gone. */
  readonly view?: RecordView
  /** 0 before it was read. */
  readonly readAt: number
}

export interface DeniedState extends DeniedThing {
  readonly reason: string
  readonly at: number
  readonly until?: number
  /** Milliseconds until each receiver applied it; absent while it does not. */
  readonly appliedAfter: Readonly<Partial<Record<ReceiverName, number>>>
}
