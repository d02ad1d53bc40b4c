import { channel } from 'node:diagnostics_channel'
import { type Logger, logDecisions } from 'express-service-auth'
import { expect, it, onTestFinished } from 'vitest'
import { rowsOf } from '../../example-app/control-room/page/panels/events-filter.js'
import type { RoomEvent } from '../../example-app/control-room/protocol.js'
import { levelOf } from '../../example-app/control-room/receivers/child/levels.js'
import { searchedLogger } from '../support/secret-search/index.js'

const EVENTS: Readonly<Record<RoomEvent['channel'], readonly object[]>> = {
  decision: [
    { outcome: 'accepted', by: 'serviceAuth' },
    { outcome: 'refused', by: 'serviceAuth', reason: 'claim_invalid' },
    { outcome: 'undecided', by: 'serviceAuth', reason: 'key_set_unavailable' },
  ],
  idempotency: [
    { outcome: 'refused', reason: 'outcome_unknown' },
    { outcome: 'undecided', reason: 'store_unavailable' },
    ...[
      ...['reserved', 'replayed', 'result_kept', 'released', 'result_too_large', 'abandoned'],
      ...['key_lost', 'result_lost', 'refusal_kept', 'rolled_back', 'conflict', 'uncoupled'],
      ...['transaction_used_late', 'transaction_unused', 'answer_unsent', 'key_missing'],
    ].map((reason) => ({ outcome: 'accepted', by: 'requireIdempotencyKey', reason })),
  ],
  keys: [
    { type: 'fetched', added: ['d-1'], replaced: [], removed: [] },
    { type: 'fetched', added: [], replaced: [], removed: [] },
    ...['not_modified', 'failed', 'key_skipped', 'budget_exhausted', 'expired'].map((type) => ({
      type,
    })),
  ],
  denylist: ['changed', 'stale', 'expired', 'recovered', 'regressed'].map((type) => ({ type })),
}

it('have the level at which they are logged', () => {
  const logged = new Map<object, string>()
  const at = (level: string) => (event: object) => logged.set(event, level)
  const logger: Logger = { info: at('info'), warn: at('warn'), error: at('error') }
  onTestFinished(logDecisions(searchedLogger(logger), { accepted: true }))
  for (const [name, events] of Object.entries(EVENTS)) {
    for (const event of events) {
      channel(`express-service-auth:${name}`).publish(event)
      const level = levelOf(event as RoomEvent['event'])
      expect(level, JSON.stringify(event)).toBe(logged.get(event) ?? 'info')
    }
  }
  expect(logged.size).toBeGreaterThan(25)
})

it('share a row if they have changed nothing', () => {
  const [changed, same, notModified] = EVENTS.keys
  const told = [notModified, same, changed, notModified, notModified, same]
  const events = told.map((event, index) => {
    const { type: title } = event as { type: string }
    return { channel: 'keys', title, number: 9 - index, event } as RoomEvent
  })
  const rows = rowsOf(events).map(({ event: { number }, times }) => [number, times])
  expect(rows).toEqual([
    [9, 3],
    [8, 2],
    [7, 1],
  ])
})
