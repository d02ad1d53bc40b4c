import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import type { KeySetEvent } from '../../base/decision/key-set-event.js'
import type { MigrationDecision, MigrationProgress } from '../../base/decision/migration-event.js'
import type { DenylistEvent, PostgresEvent, StoreEvent } from '../../base/decision/store-event.js'

export type Level = 'info' | 'warn' | 'error'

/** A log line. The rate limit counts the lines of each `reason`, and of each `caller` or `jwksUri`. */
export interface Line {
  readonly level: Level
  /** Holds no data chosen by a caller; such data is in the event. */
  readonly message: string
  readonly reason: string
  readonly caller?: string | undefined
  readonly jwksUri?: string
}

export const lineOfDecision = (event: DecisionEvent): Line => lineOfOutcome(event, event.caller)

function lineOfOutcome(event: DecisionEvent | MigrationDecision, caller: string | undefined): Line {
  const { by } = event
  switch (event.outcome) {
    case 'accepted':
      return { level: 'info', message: `${by} accepted a request.`, reason: 'accepted', caller }
    case 'refused': {
      const message = `${by} refused a request: ${event.reason}.`
      return { level: 'warn', message, reason: event.reason, caller }
    }
    case 'undecided': {
      const message = `${by} could not decide on a request: ${event.reason}.`
      return { level: 'error', message, reason: event.reason, caller }
    }
  }
}

type AcceptedReason = Extract<IdempotencyEvent, { outcome: 'accepted' }>['reason']

/** The level is `warn` if a retry gets a different answer from the first request. */
const ACCEPTED_LINES: Record<AcceptedReason, readonly [Level, string]> = {
  reserved: ['info', 'A write reserved its key.'],
  key_missing: ['warn', 'A write without a key is running.'],
  replayed: ['info', 'A retry got the stored result.'],
  result_kept: ['info', 'A write ended, and its result is stored.'],
  released: ['info', 'A write ended and freed its key.'],
  result_too_large: ['warn', 'A write ended, but its result is too large to store.'],
  abandoned: ['warn', 'A write ended without a response: its outcome is unknown.'],
  key_lost: ['warn', 'A write ended after another run took over its key.'],
  result_lost: ['error', 'A write ended, but its result could not be stored.'],
  refusal_kept: ['info', 'A write was refused and rolled back, and its answer is stored.'],
  rolled_back: ['info', 'A write was rolled back, and nothing is stored.'],
  conflict: ['warn', 'A write ended after another run with the same key committed.'],
  uncoupled: ['error', 'A handler ended its transaction itself.'],
  transaction_used_late: ['error', 'A handler used its transaction after its answer.'],
  transaction_unused: ['warn', 'A handler answered without using its transaction.'],
  answer_unsent: ['error', 'The answer to a write could not be sent.'],
}

export function lineOfIdempotency(event: IdempotencyEvent): Line {
  const { caller, reason } = event
  switch (event.outcome) {
    case 'accepted': {
      const [level, message] = ACCEPTED_LINES[event.reason]
      return { level, message, reason, caller }
    }
    case 'refused':
      return { level: 'warn', message: `A write was refused: ${reason}.`, reason, caller }
    case 'undecided': {
      const message = `Could not decide on a write: ${reason}.`
      return { level: 'error', message, reason, caller }
    }
  }
}

/** Returns `undefined` if the event is not logged. */
export function lineOfKeySet(event: KeySetEvent): Line | undefined {
  const line = (level: Level, message: string): Line => {
    return { level, message, reason: `key_set_${event.type}`, jwksUri: event.jwksUri }
  }
  switch (event.type) {
    case 'fetched': {
      const changes = event.added.length + event.replaced.length + event.removed.length
      return changes === 0 ? undefined : line('info', 'The key set changed.')
    }
    case 'not_modified':
      return undefined
    case 'failed':
      return line('error', `The key set could not be fetched: ${event.reason}.`)
    case 'key_skipped':
      return line('warn', `A key of the key set is not usable: ${event.reason}.`)
    case 'budget_exhausted':
      return line('warn', 'For now, unknown key ids no longer cause fetches of the key set.')
    case 'expired':
      return line('error', 'The key set is too old to use.')
  }
}

export function lineOfDenylist(event: DenylistEvent): Line {
  const line = (level: Level, message: string): Line => {
    return { level, message, reason: `denylist_${event.type}` }
  }
  switch (event.type) {
    case 'changed':
      return line('info', 'The denylist changed.')
    case 'stale':
      return line('error', `The denylist could not be refreshed: ${event.reason}.`)
    case 'expired':
      return line('error', `The denylist is too old to use: ${event.reason}.`)
    case 'recovered':
      return line('info', 'The denylist is up to date again.')
    case 'regressed':
      return line(
        'error',
        'The denylist in Redis lost entries, which stay in force in this process.',
      )
  }
}

/** Logs failed renewals only: other failed calls show in the events of their requests. */
export function lineOfStore({ operation, ok }: StoreEvent): Line | undefined {
  if (ok || operation !== 'renew') return undefined
  const message = 'The lease of a write could not be renewed.'
  return { level: 'error', message, reason: 'renew_failed' }
}

export function lineOfPostgres({ type }: PostgresEvent): Line | undefined {
  if (type === 'swept') return undefined
  return { level: 'error', message: 'Expired rows could not be deleted.', reason: type }
}

/** The level is `warn` if the migration has to look up or correct something afterwards. */
const PROGRESS_LINES: Record<MigrationProgress['type'], readonly [Level, string]> = {
  preflight: ['info', 'A migration started its preflight.'],
  batch_staged: ['info', 'A migration staged a batch.'],
  batch_rejected: ['warn', 'The core rejected users of a migration.'],
  reply_lost: ['warn', 'A migration got no reply from the core.'],
  reply_resolved: ['info', 'A migration found out whether a call without a reply took effect.'],
  waiting: ['info', 'A migration is waiting for rows at the core.'],
  row_failed: ['warn', 'Rows of a migration failed at the core.'],
  rows_deleted: ['info', 'A migration deleted rows.'],
  settled: ['info', 'A migration looked up or imported the users of deleted rows.'],
  corrected: ['info', 'A migration applied corrections.'],
  reconciling: ['info', 'A migration is comparing accounts with their records.'],
  ended: ['info', 'A step of a migration ended.'],
}

export function lineOfMigration(event: MigrationDecision | MigrationProgress): Line {
  // The endpoint's only caller is its issuer.
  if (event.by === 'migrationEndpoint') return lineOfOutcome(event, event.issuer)
  const [level, message] = PROGRESS_LINES[event.type]
  return { level, message, reason: `migration_${event.type}` }
}
