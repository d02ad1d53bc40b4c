import { expect, it } from 'vitest'
import type { DenylistEvent } from '../../../src/base/decision/denylist-event.js'
import type { KeySetChange } from '../../../src/base/decision/key-set-event.js'
import type { MigrationProgress } from '../../../src/base/decision/migration-event.js'
import type { RunEnd, StoreEvent } from '../../../src/index.js'
import {
  lineOfDenylist,
  lineOfIdempotency,
  lineOfKeySet,
  lineOfMigration,
  lineOfPostgres,
  lineOfStore,
} from '../../../src/telemetry/log/line.js'

const changes = { added: [], replaced: [], removed: [] }

it.each<[KeySetChange, string | undefined]>([
  [{ type: 'fetched', ...changes }, undefined],
  [{ type: 'fetched', ...changes, added: ['a'] }, 'info'],
  [{ type: 'fetched', ...changes, replaced: ['a'] }, 'info'],
  [{ type: 'fetched', ...changes, removed: ['a'] }, 'info'],
  [{ type: 'not_modified' }, undefined],
  [{ type: 'failed', reason: 'timeout' }, 'error'],
  [{ type: 'key_skipped', reason: 'too_short' as never }, 'warn'],
  [{ type: 'budget_exhausted' }, 'warn'],
  [{ type: 'expired' }, 'error'],
])('of a key set, %o is %s', (change, level) => {
  const told = lineOfKeySet({ ...change, jwksUri: 'https://core.test/jwks' })
  expect(told?.level).toBe(level)
  if (told !== undefined) {
    expect(told).toMatchObject({
      reason: `key_set_${change.type}`,
      jwksUri: 'https://core.test/jwks',
    })
  }
})

it.each<[DenylistEvent, string]>([
  [{ type: 'changed', version: 2, added: 1, removed: 0 }, 'info'],
  [{ type: 'stale', reason: 'timeout' }, 'error'],
  [{ type: 'expired', reason: 'network' }, 'error'],
  [{ type: 'recovered' }, 'info'],
  [{ type: 'regressed', kept: 3 }, 'error'],
])('of a denylist, %o is %s', (event, level) => {
  expect(lineOfDenylist(event)).toMatchObject({ level, reason: `denylist_${event.type}` })
})

it.each<[RunEnd | 'reserved', string]>([
  ['reserved', 'info'],
  ['result_kept', 'info'],
  ['released', 'info'],
  ['result_too_large', 'warn'],
  ['abandoned', 'warn'],
  ['key_lost', 'warn'],
  ['result_lost', 'error'],
])('of a run, %s is %s', (reason, level) => {
  const event = { by: 'requireIdempotencyKey', caller: 'billing', fence: 1 } as const
  expect(lineOfIdempotency({ ...event, outcome: 'accepted', reason })).toMatchObject({
    level,
    reason,
    caller: 'billing',
  })
})

it('of an answer that could not be sent is an error', () => {
  const event = { by: 'requireIdempotencyKey', caller: 'billing', outcome: 'accepted' } as const
  const reason = 'answer_unsent'
  expect(lineOfIdempotency({ ...event, reason, status: 200 })).toMatchObject({
    level: 'error',
    reason,
  })
})

it.each<[StoreEvent['operation'], boolean, string | undefined]>([
  ['renew', false, 'error'],
  ['renew', true, undefined],
  ['consume', false, undefined],
  ['reserve', false, undefined],
  ['settle', false, undefined],
])('of the calls of a store, %s (answered: %s) is %s', (operation, ok, level) => {
  expect(lineOfStore({ operation, ok, durationMs: 1 })?.level).toBe(level)
})

it('of what a Postgres store does by itself, only a failed sweep is worth a line', () => {
  expect(lineOfPostgres({ type: 'swept', deleted: 3, durationMs: 1 })).toBeUndefined()
  expect(lineOfPostgres({ type: 'sweep_failed', sqlState: '42501' })).toMatchObject({
    level: 'error',
    reason: 'sweep_failed',
  })
})

it.each<[MigrationProgress['type'], string]>([
  ['batch_staged', 'info'],
  ['batch_rejected', 'warn'],
  ['reply_lost', 'warn'],
  ['row_failed', 'warn'],
  ['ended', 'info'],
])('of a migration, %s is %s', (type, level) => {
  const counts = {} as MigrationProgress['counts']
  expect(lineOfMigration({ by: 'migration', type, counts, identities: 1 })).toMatchObject({
    level,
    reason: `migration_${type}`,
  })
})
