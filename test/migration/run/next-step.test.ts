import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyEntry } from '../../../src/migration/run/state/apply-entry.js'
import {
  begunEntry,
  type Entry,
  type EntryOf,
} from '../../../src/migration/run/state/journal-entry.js'
import { nextStep } from '../../../src/migration/run/state/next-step.js'
import { countsOf, createRunState } from '../../../src/migration/run/state/run-state.js'
import { restingState } from '../../../src/migration/run/state/run-status.js'

const IDENTITIES = 4
const begun = begunEntry({
  at: 1,
  identities: IDENTITIES,
  source: { name: 'people', file: false, digest: 'd' },
})
const started: Entry[] = [begun, { type: 'examined' }, { type: 'started' }]
const sent: Entry = { type: 'batch_sent', batch: 1, of: '0-3' }
const staged: Entry = { type: 'batch_staged', batch: 1, by: 'reply' }
const failedRow: Entry = {
  type: 'row',
  row: 'row-1',
  of: 0,
  line: 1,
  externalUserId: 'user-0',
  as: 'failed',
  code: 'E019',
}
const leftOut: Entry = {
  type: 'corrected',
  source: { name: 'corrections', file: false, digest: 'c' },
  replaced: [],
  leftOut: [[0, 1, 'has an account of old']],
  accepted: [],
}
const again: Entry = { type: 'again', codes: ['E019'], of: '0' }
const twinRow: Entry = { ...failedRow, row: 'row-2', of: 1, externalUserId: 'user-1', as: 'twin' }
const atRest: Entry[] = [...started, sent, staged, { type: 'waited' }, { type: 'collected' }]
const lookedUp = (same: number[]): EntryOf<'looked_up'> => ({
  type: 'looked_up',
  same: same.map((ordinal) => [ordinal, `core-${ordinal}`]),
  differs: [],
  shared: [],
  missing: [],
})

function stateAfter(entries: readonly Entry[]) {
  const state = createRunState()
  for (const entry of entries) applyEntry(state, entry)
  return state
}

describe('the next step of a run', () => {
  it.each<[string, readonly Entry[], string]>([
    ['an empty journal', [], 'preflight'],
    ['a preflight that has not passed', [begun, { type: 'examined' }], 'preflight'],
    ['a preflight that has', started, 'stage'],
    ['a call without its end', [...started, sent], 'resolve_batch'],
    ['a call refused', [...started, sent, { type: 'batch_refused', batch: 1, code: 'x' }], 'stage'],
    [
      'a call that never landed',
      [...started, sent, { type: 'batch_absent', batch: 1, found: '' }],
      'stage',
    ],
    ['all staged', [...started, sent, staged], 'wait'],
    ['nothing waiting', [...started, sent, staged, { type: 'waited' }], 'collect'],
    ['a twin', [...atRest, twinRow], 'delete_rows'],
    [
      'a deletion without its end',
      [...atRest, twinRow, { type: 'delete_sent', rows: ['row-2'] }],
      'resolve_deletion',
    ],
    [
      'a deletion that does not account for each row',
      [
        ...atRest,
        twinRow,
        { type: 'delete_sent', rows: ['row-2'] },
        { type: 'delete_unaccounted', deleted: [], open: ['row-2'] },
      ],
      'end',
    ],
    ['all at rest', atRest, 'reconcile'],
    ['a round of look-ups ended', [...atRest, lookedUp([0, 1]), { type: 'reconciled' }], 'end'],
    [
      'rows that appeared meanwhile',
      [...atRest, lookedUp([0, 1, 2, 3]), { type: 'rows_appeared' }],
      'wait',
    ],
    [
      'a failure that is sent again: its row leaves first',
      [...atRest, failedRow, { type: 'reconciled' }, again],
      'delete_rows',
    ],
    [
      'a twin of somebody who has failed: all of their rows leave',
      [
        ...atRest,
        failedRow,
        { ...failedRow, row: 'row-2', as: 'twin' },
        { type: 'collected' },
        { type: 'delete_sent', rows: ['row-2'] },
        { type: 'deleted', rows: ['row-2'] },
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
      [...atRest, failedRow, { ...lookedUp([2, 3]), shared: [0, 1].map((of) => [of, 'core-0']) }],
      'delete_rows',
    ],
    [
      'somebody left out: their row leaves, and then what came meanwhile is looked for',
      [
        ...atRest,
        failedRow,
        lookedUp([1, 2, 3]),
        { type: 'reconciled' },
        leftOut,
        { type: 'delete_sent', rows: ['row-1'] },
        { type: 'deleted', rows: ['row-1'] },
      ],
      'reconcile',
    ],
    [
      'a twin deleted after the look-ups',
      [
        ...atRest,
        twinRow,
        lookedUp([0, 1, 2, 3]),
        { type: 'reconciled' },
        { type: 'delete_sent', rows: ['row-2'] },
        { type: 'deleted', rows: ['row-2'] },
      ],
      'reconcile',
    ],
    [
      'its row gone',
      [
        ...atRest,
        failedRow,
        again,
        { type: 'delete_sent', rows: ['row-1'] },
        { type: 'deleted', rows: ['row-1'] },
      ],
      'stage',
    ],
  ])('after %s', (_, entries, step) => {
    expect(nextStep(stateAfter(entries), 'finish')).toBe(step)
  })

  it('stages nothing for somebody who only looks', () => {
    expect(nextStep(stateAfter(started), 'look')).toBe('reconcile')
  })

  it('is complete only when each identity is proved', () => {
    const some = [...atRest, lookedUp([0, 1, 2]), { type: 'reconciled' } as const]
    expect(restingState(stateAfter(some))).toBe('to_reconcile')
    const all = [...atRest, lookedUp([0, 1, 2, 3]), { type: 'reconciled' } as const]
    expect(restingState(stateAfter(all))).toBe('complete')
  })

  it('ends with what must be corrected', () => {
    const failed = [...atRest, failedRow, lookedUp([1, 2, 3]), { type: 'reconciled' } as const]
    expect(restingState(stateAfter(failed))).toBe('to_correct')
  })

  it('unblocks a deletion when somebody asks to reconcile, and decides it by the list', () => {
    const entries: Entry[] = [
      ...atRest,
      twinRow,
      { type: 'delete_sent', rows: ['row-2'] },
      { type: 'delete_unaccounted', deleted: [], open: ['row-2'] },
      { type: 'reconcile_asked' },
    ]
    expect(nextStep(stateAfter(entries), 'look')).toBe('resolve_deletion')
  })
})

/** Any entries that fit, one after the other: what a run could write, and a little more. */
const anyEntry = fc.oneof(
  fc.constant(sent),
  fc.constant(staged),
  fc.constant<Entry>({ type: 'batch_refused', batch: 1, code: 'too_large' }),
  fc.constant<Entry>({ type: 'batch_absent', batch: 1, found: '2' }),
  fc.constant<Entry>({ type: 'waited' }),
  fc.constant<Entry>({ type: 'collected' }),
  fc.constant(failedRow),
  fc.constant(twinRow),
  fc.constant<Entry>({ type: 'delete_sent', rows: ['row-1', 'row-2'] }),
  fc.constant<Entry>({ type: 'deleted', rows: ['row-1', 'row-2'] }),
  fc.constant<Entry>({ type: 'delete_unaccounted', deleted: ['row-1'], open: ['row-2'] }),
  fc.constant<Entry>({ type: 'reconcile_asked' }),
  fc.constant<Entry>({ type: 'reconciled' }),
  fc.constant(again),
  fc.subarray([0, 1, 2, 3]).map(lookedUp),
  fc.constant<Entry>({ ...lookedUp([]), shared: [0, 1].map((of) => [of, 'core-0']) }),
  fc.constant<Entry>({ ...lookedUp([]), missing: [[0, null]] }),
)

describe('a journal cut off anywhere', () => {
  it('counts each identity once, and is complete only when all are proved', () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
        const state = createRunState()
        for (const entry of started) applyEntry(state, entry)
        for (const entry of entries) {
          // A call ends only once begun, and begins only when none is undecided.
          const isOpen = state.undecided !== undefined
          if (entry.type === 'batch_sent' ? isOpen : 'batch' in entry && !isOpen) continue
          applyEntry(state, entry)
          const counts = countsOf(state)
          expect(Object.values(counts).reduce((sum, each) => sum + each, 0)).toBe(IDENTITIES)
          if (restingState(state) !== 'complete') continue
          expect(counts.reconciled + counts.accepted + counts.left_out).toBe(IDENTITIES)
          expect(state.undecided ?? state.deleting).toBeUndefined()
          expect(state.rows.size).toBe(0)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('never sends anything while a call is undecided', () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
        const state = stateAfter(started)
        for (const entry of entries) {
          const isOpen = state.undecided !== undefined
          if (entry.type === 'batch_sent' ? isOpen : 'batch' in entry && !isOpen) continue
          applyEntry(state, entry)
          const step = nextStep(state, 'finish')
          if (state.undecided !== undefined || state.deleting !== undefined || state.blocked) {
            expect(['stage', 'delete_rows']).not.toContain(step)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})
