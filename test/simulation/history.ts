import type { DatabaseStep } from './postgres/database.js'
import type { RecordStep } from './records.js'
import type { Call } from './story.js'

/** What a story was, for the oracle and for the time line. Times are real, in ms. */
export class History {
  readonly calls: CallRecord[] = []
  readonly attempts: Attempt[] = []
  readonly runs: Run[] = []
  readonly disturbances: Disturbance[] = []
  readonly losses: Loss[] = []
  readonly settlements: SettlementRecord[] = []
  readonly steps: RecordStep[] = []
  readonly databaseSteps: DatabaseStep[] = []
  readonly denials: Denial[] = []
  readonly rotations: Rotation[] = []
  readonly lines: Line[] = []
}

/** A call of `serviceFetch`, with all its attempts. */
export interface CallRecord extends Call {
  readonly number: number
  readonly name: string
  readonly recordName: string
  /** After all faults. */
  readonly isLast: boolean
  readonly startedAt: number
  endedAt?: number
  answer?: Answer
}

export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

const PROBLEM = 'urn:express-service-auth:'

/** The type of a problem, without its prefix. */
export function problemOf({ headers, body }: Answer): string | undefined {
  if (headers['content-type'] !== 'application/problem+json') return undefined
  return String(JSON.parse(body).type).replace(PROBLEM, '')
}

/** One request, as its receiver saw it and as its caller saw it. */
export interface Attempt {
  readonly call: CallRecord
  readonly number: number
  readonly token: { readonly id: string; readonly kid: string; readonly service: string }
  readonly sentAt: number
  receiver?: string
  /** When the process of the receiver started. */
  bootedAt?: number
  /** When it reached the handler chain, and when its answer was handed to the socket. */
  receivedAt?: number
  /** Whether the receiver let it pass `serviceAuth`, and `requireSingleUse`. */
  isAdmitted?: boolean
  admittedAt?: number
  isConsumed?: boolean
  /** What was written to the socket. */
  answeredStatus?: number
  /** When the first byte of an answer reached the caller. */
  firstByteAt?: number
  /** What the caller got. */
  answer?: Answer
  gotAt?: number
}

/** One run of a handler. */
export interface Run {
  readonly number: number
  readonly attempt: Attempt
  readonly recordName: string
  readonly body: string
  readonly receiver: string
  readonly fence: number
  readonly startedAt: number
  /** Whether its process is gone. */
  isDead(): boolean
  effectAt?: number
  /** Its answer, complete or not. */
  answer?: { readonly status: number; readonly body: string }
  endedAt?: number
  ending?: string
  /** When its signal aborted. */
  lostLeaseAt?: number
  /** What its receiver has published of its end, and when. */
  reported?: string
  reportedAt?: number
}

/** Something that may keep a receiver from its store. `who` is a machine, or all. */
export interface Disturbance {
  readonly what: string
  readonly who: string
  readonly from: number
  readonly ms: number
  until: number
}

export interface Loss {
  readonly at: number
  readonly what: 'flush' | 'failover' | 'restart'
  readonly keys: ReadonlySet<string>
}

export interface SettlementRecord {
  readonly recordName: string
  readonly as: 'finished' | 'freed'
  readonly sentAt: number
  doneAt?: number
  /** The run that the operator found. */
  foundFence?: number
  isDone?: boolean
  readonly answer?: { readonly status: number; readonly body: string }
}

export interface Denial {
  readonly service: string
  readonly what: 'deny' | 'allow'
  readonly sentAt: number
  confirmedAt?: number
}

export interface Rotation {
  readonly kid: string
  readonly what: 'add' | 'remove'
  readonly at: number
}

export interface Line {
  readonly at: number
  readonly party: string
  readonly text: string
}
