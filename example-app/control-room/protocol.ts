import type {
  DecisionEvent,
  DenylistEvent,
  DenylistHealth,
  IdempotencyEvent,
  KeySetEvent,
  KeySetHealth,
  RecordView,
  StoreHealth,
  TokenCacheHealth,
} from 'express-service-auth'

/*
 * What passes between the control room's server and its page, as JSON. Times are milliseconds since
 * the epoch by the server's clock, durations milliseconds, unless a name says seconds.
 */

export const RECEIVERS = ['orders-1', 'orders-2'] as const

export type ReceiverName = (typeof RECEIVERS)[number]

/** How a request ended, as plots and filters tell them apart. */
export const OUTCOMES = ['accepted', 'replayed', 'refused', 'undecided', 'failed'] as const

export type Outcome = (typeof OUTCOMES)[number]

// What the page asks for: POST <key>/api/<name>, answered with JSON: with the result, or, where that takes
// longer than a second, with 202 and a ticket, by which the page asks again.

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

/** `why` is one sentence. */
export type Settled =
  | { readonly isSettled: true }
  | { readonly isSettled: false; readonly why: string }

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

// What a call comes to.

export interface CallResult {
  readonly id: string
  readonly sentAt: number
  readonly request: {
    readonly receiver: ReceiverName
    /** The request as it was sent, the token cut to its beginning. */
    readonly text: string
    readonly token: ShownToken
  }
  readonly answer: CallAnswer
  readonly operator: OperatorView
}

export type CallAnswer =
  | {
      readonly status: number
      /** Status line, headers and body, to the byte, as text. */
      readonly text: string
      readonly bytes: number
      readonly milliseconds: number
    }
  /** The connection was refused or cut, or nobody answered in time. */
  | { readonly failure: string; readonly text: string; readonly milliseconds: number }

/** What can be shown of an Authorization header. */
export interface ShownToken {
  /** The value of the header, cut. */
  readonly authorization: string
  /** Absent where it cannot be decoded. */
  readonly header?: unknown
  readonly payload?: unknown
  /** Why the catalogue says that it must be refused. */
  readonly hostility?: string
}

/** What whoever operates the receiver sees of the call. */
export interface OperatorView {
  readonly outcome: Outcome
  readonly reason?: string
  readonly claim?: string
  readonly permission?: string
  readonly keyId?: string
  readonly caller?: string
  /** In the order of the verdict; at most one has failed, and none after it was reached. */
  readonly steps: readonly VerdictStep[]
  readonly events: readonly RoomEvent[]
}

export interface VerdictStep {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'not-reached'
  /** Of the step that failed: what was wrong, in words. */
  readonly detail?: string
}

export interface ManyCallsResult {
  readonly calls: number
  readonly milliseconds: number
  /** How many got each answer, the most frequent first. */
  readonly answers: readonly {
    readonly status: number | undefined
    readonly reason: string | undefined
    readonly isReplay: boolean
    readonly calls: number
  }[]
  /** How many orders were added to the books. */
  readonly newOrders: number
}

/** What the page is told by server-sent events, by their types. */
export interface Messages {
  catalogue: CatalogueMessage
  state: RoomState
  seconds: SecondsMessage
  events: EventsMessage
}

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

/** `catalogue`: the hostile tokens that can be sent, when the page connects. */
export interface CatalogueMessage {
  readonly hostileTokens: readonly HostileTokenCase[]
}

export interface HostileTokenCase {
  readonly name: string
  /** Why it must be refused. */
  readonly why: string
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
  /** As the store told it at `readAt`; absent when the record is gone. */
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

export interface TourStep {
  readonly index: number
  readonly title: string
  /** One sentence. */
  readonly about: string
  readonly request: string
  readonly state: 'not-played' | 'playing' | 'as-told' | 'otherwise'
  readonly status?: number
  /** What the operator saw. */
  readonly seen?: string
  readonly answer?: string
  /** What went otherwise than told. */
  readonly faults: readonly string[]
}

/** `seconds`: all of the last five minutes when the page connects, then each as it ends. */
export interface SecondsMessage {
  readonly seconds: readonly Second[]
}

export interface Second {
  /** When it began. */
  readonly at: number
  readonly requests: Readonly<Record<Outcome, number>>
  /** Of the requests that ended in it; absent when there were none. */
  readonly latency?: { readonly medianMs: number; readonly p99Ms: number }
  readonly cacheHits: number
  readonly cacheMisses: number
  readonly store?: { readonly medianMs: number; readonly p99Ms: number }
  readonly storeFailures: number
}

/** `events`: the last ones when the page connects, then a sample of the new ones. */
export interface EventsMessage {
  readonly events: readonly RoomEvent[]
  /** How many of the same time were left out. */
  readonly leftOut: number
}

/** What a receiver has published on a channel of the package. */
export interface RoomEvent {
  /** Grows by one with each event, those left out included. */
  readonly number: number
  readonly at: number
  readonly receiver: ReceiverName | 'story'
  /** The call of this room that it belongs to. */
  readonly call?: string
  readonly channel: 'decision' | 'idempotency' | 'keys' | 'denylist'
  /** `fault`: of our own, or of the world, never of the caller. */
  readonly level: 'accepted' | 'refused' | 'fault' | 'change'
  /** The reason, or the type of the change. */
  readonly title: string
  readonly event: DecisionEvent | IdempotencyEvent | KeySetEvent | DenylistEvent
}
