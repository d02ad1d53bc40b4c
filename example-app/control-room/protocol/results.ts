import type { RoomEvent } from './event.js'
import type { Outcome, ReceiverName } from './names.js'

/* What an action comes to. */

/** `why` is one sentence. */
export type Settled =
  | { readonly isSettled: true }
  | { readonly isSettled: false; readonly why: string }

export interface CallResult {
  readonly id: string
  readonly sentAt: number
  readonly request: {
    readonly receiver: ReceiverName
    /** The request as it was sent, the token cut to its beginning. */
    readonly text: string
    /** The same request as a shell command, with the whole token. */
    readonly curl: string
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
  /** The connection was refused or cut, or no answer came in time. */
  | {
      readonly failure: string
      readonly text: string
      readonly milliseconds: number
      /** Whether the receiver can have read the request. */
      readonly isSent: boolean
    }

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

export interface TourStep {
  readonly index: number
  readonly title: string
  /** One sentence. */
  readonly about: string
  readonly request: string
  readonly state: 'not-played' | 'playing' | 'as-expected' | 'otherwise'
  readonly status?: number
  /** What the operator saw. */
  readonly seen?: string
  readonly answer?: string
  /** What differs from the expectation. */
  readonly faults: readonly string[]
}
