import { expect, it } from 'vitest'
import type {
  MigrationCounts,
  MigrationProgress,
} from '../../../src/base/decision/migration-event.js'
import { showProgress } from '../../../src/cli/migrate/show-progress.js'
import { countsOf, createRunState } from '../../../src/migration/run/state/run-state.js'

const event = (
  type: MigrationProgress['type'],
  counts: Partial<MigrationCounts>,
  more: Partial<MigrationProgress> = {},
): MigrationProgress => ({
  by: 'migration',
  type,
  identities: 4000,
  counts: { ...countsOf(createRunState()), ...counts },
  ...more,
})

/** What is shown of events, each with the moment of its coming in milliseconds. */
function shown(events: readonly (readonly [at: number, event: MigrationProgress])[]): string[] {
  const lines: string[] = []
  let now = 0
  const progress = (line: string) => void lines.push(line)
  const show = showProgress({ progress, event: () => undefined }, () => now)
  for (const [at, each] of events) {
    now = at
    show(each)
  }
  return lines
}

const staged = (count: number) =>
  event('batch_staged', { staged: count, pending: 4000 - count }, { batch: 1 })

it('there is a line on each change, of what goes on one a second', () => {
  expect(
    shown([
      [0, event('preflight', { pending: 4000 })],
      [0, staged(1000)],
      [500, staged(2000)],
      [1000, staged(3000)],
      [1001, event('reply_lost', {}, { batch: 4, users: 1000 })],
      [1002, event('reply_resolved', {}, { batch: 4, users: 1000 })],
      [2001, staged(3000)],
      [3001, event('waiting', { staged: 4000 }, { rows: { new: 1000, processing: 50 } })],
      [3002, event('row_failed', { staged: 3998, failed: 2 }, { users: 2 })],
      [3003, event('reconciling', { staged: 1998, reconciled: 2000, failed: 2 })],
      [4003, event('ended', { reconciled: 3998, failed: 2 })],
    ]),
  ).toEqual([
    'preflight (4,000)',
    'staging: 1,000 of 4,000; pending 3,000, staged 1,000',
    'staging: 3,000 of 4,000; pending 1,000, staged 3,000',
    'batch 4: no reply: checking whether the call took effect (1,000)',
    'batch 4: the lost reply is resolved (1,000)',
    'staging: 3,000 of 4,000; pending 1,000, staged 3,000',
    'waiting: 2,950 of 4,000',
    'rows failed (2)',
    'reconciling: 2,000 of 3,998; failed 2, reconciled 2,000',
  ])
})
