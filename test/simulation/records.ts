import type { Stored } from './redis/commands.js'
import type { Story } from './story.js'

/*
 * The record of a key as a state machine: what one step at the server may change. The server runs one step at a
 * time, so the history of a key is linearizable if each of its steps is one of these.
 */

/** A command that has read or written the record of a key, as the server saw it. */
export interface RecordStep {
  readonly recordName: string
  /** Who sent it. */
  readonly by: string
  readonly sentAt: number
  readonly at: number
  readonly before: KeyRecord | undefined
  readonly after: KeyRecord | undefined
  readonly isWrite: boolean
  readonly isFull: boolean
}

/** A record, as it was at that step. */
export interface KeyRecord {
  readonly state: 'r' | 'd' | 'u' | 'f'
  readonly fence: number
  readonly owner: string
  readonly fingerprint: string
  /** In ms from now; after its lease, a record lasts for its retention. */
  readonly leaseMs: number
  readonly lastsMs: number
  readonly result: string
}

const FORM = /^1\|([rdfu])\|(\d+)\|(\d+)\|(\d+)\|(\d+)\|/

/** `undefined` if there is none any more. @throws Error if it is no record. */
export function recordOf(stored: Stored | undefined, now: number): KeyRecord | undefined {
  if (stored === undefined || stored.endsAt <= now) return undefined
  const text = stored.type === 'string' ? stored.value : stored.type
  const [head = '', state, ...digits] = FORM.exec(text) ?? []
  if (head === '') throw new Error(`no record: ${text}`)
  const [fence = 0, retention = 0, ownerSize = 0, fingerprintSize = 0] = digits.map(Number)
  const middle = head.length + ownerSize
  const lastsMs = stored.endsAt - now
  return {
    state: state as KeyRecord['state'],
    fence,
    owner: text.slice(head.length, middle),
    fingerprint: text.slice(middle, middle + fingerprintSize),
    leaseMs: lastsMs - retention,
    lastsMs,
    result: text.slice(middle + fingerprintSize),
  }
}

/** What is wrong with a step; `undefined` if nothing is. */
export function faultOfStep(
  { before: old, after: next, isFull }: RecordStep,
  { leaseSeconds, whenAbandoned }: Story,
  retentionSeconds: number,
): string | undefined {
  // A full server frees a key without leaving a tombstone.
  if (next === undefined) return isFull ? undefined : 'is deleted'
  const leastMs = (next.state === 'f' ? leaseSeconds : retentionSeconds) * 1000
  const isShortened = next.lastsMs < (old?.lastsMs ?? Number.POSITIVE_INFINITY)
  if (next.lastsMs < leastMs && isShortened) return `lasts for only ${next.lastsMs} ms`
  if (old === undefined) return undefined
  const step = `${old.state} to ${next.state}`
  if (next.fence < old.fence) return `has a lower fence (${step})`
  if (next.owner === old.owner) {
    if (next.fence !== old.fence) return `has another fence (${step})`
    return OWN_STEPS.has(step) ? undefined : `changes from ${step}`
  }
  if (old.leaseMs > 0 && old.state === 'r')
    return `is taken from a run that has its lease (${step})`
  if (next.state !== 'r') {
    const isSettled = old.state !== 'd' && old.state !== 'f' && next.fence === old.fence
    return isSettled ? undefined : `is settled by another (${step})`
  }
  if (next.fence === old.fence) return `is taken with the same fence (${step})`
  if (old.state === 'f') return undefined
  const isRerun = step === 'r to r' && whenAbandoned === 'rerun'
  return isRerun && next.fingerprint === old.fingerprint ? undefined : `is taken (${step})`
}

/** What a run may do with its own record. */
const OWN_STEPS = new Set(['r to r', 'r to u', 'r to d', 'r to f', 'f to f'])
