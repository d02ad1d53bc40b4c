import type {
  DenylistHealth,
  KeySetHealth,
  StoreHealth,
  TokenCacheHealth,
} from 'express-service-auth'
import type { ReceiverReport } from '../ports.js'
import type { ReceiverName } from '../protocol.js'
import type { CallMessage } from './ipc/calls.js'
import type { DeniedVersion } from './ipc/denied-list.js'
import type { SelfSigned } from './self-signed.js'

/** The first message to a receiver. */
export interface Beginning {
  readonly receiver: ReceiverName
  /** Those of `http` and `https`; 0 takes a free one. */
  readonly ports: readonly [number, number]
  /** Of its TLS server. */
  readonly certificate: SelfSigned
  readonly coreUrl: string
  readonly issuer: string
  readonly apiKey: string
  /** Absent: the parent keeps the records. */
  readonly redisUrl?: string
  readonly leaseSeconds: number
}

/** Where a receiver serves. */
export interface Addresses {
  readonly url: string
  /** With TLS, which asks for a client certificate. */
  readonly tlsUrl: string
}

/** How a receiver is. */
export interface ReceiverHealth {
  readonly keySet: KeySetHealth
  readonly denylist: DenylistHealth
  readonly store: StoreHealth
  readonly tokenCache: TokenCacheHealth
}

/** The gate before the answers of writes. */
export interface GateState {
  readonly isHoldingNextWrite: boolean
  readonly heldWrites: number
}

export type FromReceiver =
  | CallMessage
  | { readonly type: 'serving'; readonly addresses: Addresses }
  | { readonly type: 'failed'; readonly complaint: string }
  | { readonly type: 'report'; readonly report: Omit<ReceiverReport, 'receiver'> }
  | { readonly type: 'health'; readonly health: ReceiverHealth }
  | { readonly type: 'gate'; readonly gate: GateState }
  /** What its denylist shuts out from now on. */
  | { readonly type: 'in-force'; readonly at: number; readonly things: readonly string[] }

export type ToReceiver = CallMessage | { readonly type: 'denied'; readonly denied: DeniedVersion }

/** Names what can be denied of the room's issuer. */
export const thingName = (kind: 'caller' | 'key' | 'token', value: string): string =>
  `${kind} ${value}`
