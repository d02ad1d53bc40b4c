import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyEntry } from '../../../src/migration/run/state/apply-entry.js'
import {
  begunEntry,
  type Entry,
  type EntryOf,
  lookedUpEntry,
} from '../../../src/migration/run/state/journal-entry.js'
import { finalState, nextStep } from '../../../src/migration/run/state/next-step.js'
import {
  countsOf,
  createRunState,
  type RunState,
} from '../../../src/migration/run/state/run-state.js'
import { deletionSent, preflight, settled, staged } from './support/entries.js'

const IDENTITIES = 4
const begun = begunEntry({
  at: 1,
  identities: IDENTITIES,
  source: { name: 'people', file: false, digest: 'd' },
})
const checked = preflight()
const started: Entry[] = [begun, preflight({ started: true })]
const sent: Entry = { type: 'sent', call: { kind: 'stage', batch: 1, records: '0-3' } }
const deleted = (...rows: string[]): Entry => settled({ outcome: 'deleted', rows })
const rest = (phase: EntryOf<'rest'>['phase']): Entry => ({ type: 'rest', phase })
const reverify: Entry = { type: 'rest', phase: 'wait', reverify: true }
const failedRow: Entry = {
  type: 'row',
  row: 'row-1',
  record: 0,
  line: 1,
  externalUserId: 'user-0',
  as: 'failed',
  status: 'FAILED',
  code: 'E019',
}
const leftOut: Entry = {
  type: 'corrected',
  source: { name: 'corrections', file: false, digest: 'c' },
  replaced: [],
  leftOut: [[0, 1, 'has an account of old']],
  accepted: [],
}
const retry: Entry = { type: 'retry', codes: ['E019'], records: '0', taken: [], twice: [] }
const duplicateRow: Entry = {
  ...failedRow,
  row: 'row-2',
  record: 1,
  externalUserId: 'user-1',
  as: 'duplicate',
}
const atRest: Entry[] = [...started, sent, staged, rest('collect'), rest('reconcile')]
const lookedUp = (same: number[]): EntryOf<'looked_up'> =>
  lookedUpEntry({ same: same.map((recordIndex) => [recordIndex, `core-${recordIndex}`]) })
const SHARED: EntryOf<'looked_up'>['shared'] = [
  [0, 'core-0'],
  [1, 'core-0'],
]

function stateAfter(entries: readonly Entry[]) {
  const state = createRunState()
  for (const entry of entries) applyEntry(state, entry)
  return state
}

describe('the next step of a run', () => {
  it.each<[string, readonly Entry[], string]>([
    ['an empty journal', [], 'preflight'],
    ['a preflight that has not passed', [begun, checked], 'preflight'],
    ['a preflight that has', started, 'stage'],
    ['a call without its end', [...started, sent], 'resolve_lost_reply'],
    ['a call refused', [...started, sent, settled({ outcome: 'refused', code: 'x' })], 'stage'],
    [
      'a call that never landed',
      [...started, sent, settled({ outcome: 'absent', existing: '' })],
      'stage',
    ],
    ['all staged', [...started, sent, staged], 'wait'],
    ['nothing waiting', [...started, sent, staged, rest('collect')], 'collect'],
    ['a twin', [...atRest, duplicateRow], 'delete_rows'],
    [
      'a deletion without its end',
      [...atRest, duplicateRow, deletionSent('row-2')],
      'resolve_lost_reply',
    ],
    [
      'a deletion that does not account for each row',
      [
        ...atRest,
        duplicateRow,
        deletionSent('row-2'),
        settled({ outcome: 'unaccounted', deleted: [], open: ['row-2'] }),
      ],
      'end',
    ],
    ['all at rest', atRest, 'reconcile'],
    ['a round of look-ups ended', [...atRest, lookedUp([0, 1]), rest('done')], 'end'],
    ['rows that appeared meanwhile', [...atRest, lookedUp([0, 1, 2, 3]), rest('wait')], 'wait'],
    [
      'a failure that is sent again: its row leaves first',
      [...atRest, failedRow, rest('done'), retry],
      'delete_rows',
    ],
    [
      'a twin of somebody who has failed: all of their rows leave',
      [
        ...atRest,
        failedRow,
        { ...failedRow, row: 'row-2', as: 'duplicate' },
        rest('reconcile'),
        deletionSent('row-2'),
        deleted('row-2'),
      ],
      'delete_rows',
    ],
    [
      'the account of somebody who has failed: their row leaves',
      [...atRest, failedRow, lookedUp([0, 1, 2, 3])],
      'delete_rows',
    ],
    [
      'an account that somebody who has failed shares: their row leaves',
      [...atRest, failedRow, { ...lookedUp([2, 3]), shared: SHARED }],
      'delete_rows',
    ],
    [
      'somebody left out: their row leaves, and then what came meanwhile is looked for',
      [
        ...atRest,
        failedRow,
        lookedUp([1, 2, 3]),
        rest('done'),
        leftOut,
        deletionSent('row-1'),
        deleted('row-1'),
      ],
      'reconcile',
    ],
    [
      'a twin deleted after the look-ups',
      [
        ...atRest,
        duplicateRow,
        lookedUp([0, 1, 2, 3]),
        rest('done'),
        deletionSent('row-2'),
        deleted('row-2'),
      ],
      'reconcile',
    ],
    [
      'its row gone',
      [...atRest, failedRow, retry, deletionSent('row-1'), deleted('row-1')],
      'stage',
    ],
  ])('after %s', (_, entries, step) => {
    expect(nextStep(stateAfter(entries), 'migrate')).toBe(step)
  })

  it('stages nothing for somebody who only looks', () => {
    expect(nextStep(stateAfter(started), 'verify')).toBe('reconcile')
  })

  it('is complete only when each identity is proved', () => {
    const some = [...atRest, lookedUp([0, 1, 2]), rest('done')]
    expect(finalState(stateAfter(some))).toBe('to_reconcile')
    const all = [...atRest, lookedUp([0, 1, 2, 3]), rest('done')]
    expect(finalState(stateAfter(all))).toBe('complete')
  })

  it('ends with what must be corrected', () => {
    const failed = [...atRest, failedRow, lookedUp([1, 2, 3]), rest('done')]
    expect(finalState(stateAfter(failed))).toBe('to_correct')
  })

  it('unblocks a deletion when somebody asks to reconcile, and decides it by the list', () => {
    const entries: Entry[] = [
      ...atRest,
      duplicateRow,
      deletionSent('row-2'),
      settled({ outcome: 'unaccounted', deleted: [], open: ['row-2'] }),
      reverify,
    ]
    expect(nextStep(stateAfter(entries), 'verify')).toBe('resolve_lost_reply')
  })
})

/** Any entries that fit, one after the other: what a run could write, and a little more. */
const anyEntry = fc.oneof(
  fc.constant(sent),
  fc.constant(staged),
  fc.constant(settled({ outcome: 'refused', code: 'too_large' })),
  fc.constant(settled({ outcome: 'absent', existing: '2' })),
  fc.constant(rest('collect')),
  fc.constant(rest('reconcile')),
  fc.constant(failedRow),
  fc.constant(duplicateRow),
  fc.constant(deletionSent('row-1', 'row-2')),
  fc.constant(deleted('row-1', 'row-2')),
  fc.constant(settled({ outcome: 'unaccounted', deleted: ['row-1'], open: ['row-2'] })),
  fc.constant(reverify),
  fc.constant(rest('done')),
  fc.constant(retry),
  fc.subarray([0, 1, 2, 3]).map(lookedUp),
  fc.constant<Entry>(lookedUpEntry({ shared: SHARED })),
  fc.constant<Entry>(lookedUpEntry({ missing: [[0, null]] })),
)

/** Whether a call ends only once begun, as its kind ends, and begins only when none is unanswered. */
function fits({ unanswered }: RunState, entry: Entry): boolean {
  if (entry.type === 'sent') return unanswered === undefined
  if (entry.type !== 'settled') return true
  const { outcome } = entry.result
  const isDeletion = outcome === 'deleted' || outcome === 'unaccounted'
  return (
    unanswered !== undefined &&
    (outcome === 'refused' || isDeletion === (unanswered.kind === 'delete'))
  )
}

describe('a journal cut off anywhere', () => {
  it('counts each identity once, and is complete only when all are proved', () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
        const state = createRunState()
        for (const entry of started) applyEntry(state, entry)
        for (const entry of entries) {
          if (!fits(state, entry)) continue
          applyEntry(state, entry)
          const counts = countsOf(state)
          expect(Object.values(counts).reduce((sum, each) => sum + each, 0)).toBe(IDENTITIES)
          if (finalState(state) !== 'complete') continue
          expect(counts.reconciled + counts.accepted + counts.left_out).toBe(IDENTITIES)
          expect(state.unanswered).toBeUndefined()
          expect(state.rows.size).toBe(0)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('never sends anything while a call is unanswered', () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
        const state = stateAfter(started)
        for (const entry of entries) {
          if (!fits(state, entry)) continue
          applyEntry(state, entry)
          const step = nextStep(state, 'migrate')
          if (state.unanswered !== undefined || state.blocked) {
            expect(['stage', 'delete_rows']).not.toContain(step)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})
