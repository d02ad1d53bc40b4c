import { subscribe } from 'node:diagnostics_channel'
import type { DecisionEvent, IdempotencyEvent, KeySetEvent } from 'express-service-auth'

/** Somebody who watches orders, not billing: decisions, idempotency keys and key sets. */
export interface Operator {
  readonly onDecision: (event: DecisionEvent) => void
  /** Forgets what was seen so far. */
  startLooking(): void
  /** Why the last request was turned away, if it was. */
  reason(): string | undefined
  /** How often a key set was asked for. */
  keySetRequests(): number
  /** What was seen, in one line. */
  summary(): string
}

type Seen = DecisionEvent | IdempotencyEvent

export function createOperator(): Operator {
  let decisions: DecisionEvent[] = []
  let idempotency: IdempotencyEvent[] = []
  let keySets: KeySetEvent[] = []
  subscribe('express-service-auth:idempotency', (message) => {
    const event = message as IdempotencyEvent
    if (event.caller !== 'orders') idempotency.push(event)
  })
  subscribe('express-service-auth:keys', (event) => {
    keySets.push(event as KeySetEvent)
  })

  /** The word that ended the request: of the caller, or of the key after it. */
  const last = (): Seen | undefined =>
    idempotency.findLast(({ outcome }) => outcome !== 'accepted') ?? decisions.at(-1)

  return {
    onDecision: (event) => decisions.push(event),
    startLooking() {
      decisions = []
      idempotency = []
      keySets = []
    },
    reason() {
      const event = last()
      return event?.outcome === 'accepted' ? undefined : event?.reason
    },
    keySetRequests: () =>
      keySets.filter(({ type }) => type === 'fetched' || type === 'failed').length,
    summary() {
      const event = last()
      if (event === undefined) return 'nothing'
      const kept = idempotency.filter(({ outcome }) => outcome === 'accepted')
      return [
        describeOutcome(event),
        ...list(
          'key',
          kept.map(({ reason }) => reason),
        ),
        ...list('key set', keySets.map(describeKeySet)),
      ].join('; ')
    },
  }
}

function describeOutcome(event: Seen): string {
  const by = `${event.outcome} by ${event.by}`
  if (event.outcome === 'accepted') return by
  const what = 'permission' in event ? event.permission : 'claim' in event ? event.claim : undefined
  return `${by}: ${event.reason}${what ? ` (${what})` : ''}`
}

function describeKeySet(event: KeySetEvent): string {
  if (event.type === 'fetched') return `fetched, ${event.added.length} new`
  return event.type === 'failed' ? `failed (${event.reason})` : event.type
}

function list(name: string, entries: readonly string[]): string[] {
  return entries.length === 0 ? [] : [`${name}: ${[...new Set(entries)].join(', ')}`]
}
