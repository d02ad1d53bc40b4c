import { expect, it } from 'vitest'
import type { KeySetChange } from '../../../src/base/decision/key-set-event.js'
import type { StoreEvent } from '../../../src/index.js'
import { lineOfKeySet, lineOfPostgres, lineOfStore } from '../../../src/telemetry/log/line.js'

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
