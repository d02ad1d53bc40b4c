import type { RoomEvent } from './event.js'
import type { Outcome } from './names.js'
import type { RoomState } from './state.js'

/** What the page gets by server-sent events, by their types. */
export interface Messages {
  catalogue: CatalogueMessage
  state: RoomState
  seconds: SecondsMessage
  events: EventsMessage
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
