import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type CallResult,
  type Entry,
  type EntryOf,
  lookedUpEntry,
} from '../../../src/migration/run/state/journal-entry.js'
import { applyEntry } from '../../../src/migration/run/state/replay-journal.js'
import {
  countsOf,
  createRunState,
  finalState,
  type Goal,
  nextStep,
  type RunState,
  runStatus,
} from '../../../src/migration/run/state/run-state.js'

/** A preflight that found nothing and started nothing, apart from `results`. */
const preflight = (results: Partial<EntryOf<'preflight'>> = {}): Entry => ({
  type: 'preflight',
  started: false,
  invalid: [],
  hasAccount: [],
  foreignRows: [],
  taken: [],
  twice: [],
  ...results,
})

const deletionSent = (...rows: string[]): Entry => ({
  type: 'sent',
  call: { kind: 'delete', rows },
})

const settled = (result: CallResult): Entry => ({ type: 'settled', result })

const staged = settled({ outcome: 'staged', by: 'reply' })

const source = { name: 'people', file: false, digest: 'd' }
const begun: Entry = { type: 'begun', at: 1, identities: 4, source }
const STARTED = [begun, preflight({ started: true })]
const sent = (...records: number[]): Entry => ({
  type: 'sent',
  call: { kind: 'stage', batch: 1, records },
})
const refused = (code: string): Entry => settled({ outcome: 'refused', code })
const row = (as: EntryOf<'row'>['as'], id: string, record: number): Entry => ({
  type: 'row',
  row: id,
  record,
  line: record + 1,
  externalUserId: `user-${record}`,
  as,
  status: 'FAILED',
  code: 'E019',
})
const rest = (phase: EntryOf<'rest'>['phase'], reverify = false): Entry => ({
  type: 'rest',
  phase,
  reverify,
})
const corrected = (decisions: Partial<EntryOf<'corrected'>> = {}): Entry => ({
  type: 'corrected',
  source,
  replaced: [],
  leftOut: [],
  accepted: [],
  ...decisions,
})
const retry = (results: Partial<EntryOf<'retry'>> = {}): Entry => ({
  type: 'retry',
  codes: ['E019'],
  records: [0],
  taken: [],
  twice: [],
  ...results,
})
const SENT = sent(0, 1, 2, 3)
const FAILED = row('failed', 'r', 0)
const TWIN = row('duplicate', 's', 1)
const AT_REST = [...STARTED, SENT, staged, rest('collect'), rest('reconcile')]
const deleted = (...rows: string[]): Entry => settled({ outcome: 'deleted', rows })
const lookedUp = (same: number[]): Entry =>
  lookedUpEntry({ same: same.map((recordIndex) => [recordIndex, `core-${recordIndex}`]) })
const SHARED: EntryOf<'looked_up'>['shared'] = [
  [0, 'core-0'],
  [1, 'core-0'],
]
const UNACCOUNTED = [
  ...AT_REST,
  TWIN,
  deletionSent('s'),
  settled({ outcome: 'unaccounted', deleted: [], open: ['s'] }),
]

function stateAfter(entries: readonly Entry[]): RunState {
  const state = createRunState()
  for (const entry of entries) applyEntry(state, entry)
  return state
}

it('a journal that names a record that the source lacks is refused', () => {
  expect(() => stateAfter([...STARTED, lookedUpEntry({ same: [[4, 'x']] })])).toThrow(
    expect.objectContaining({ code: 'bad_journal' }),
  )
})

describe('the next step of a run', () => {
  it.each<[string, readonly Entry[], string]>([
    ['an empty journal', [], 'preflight'],
    ['a preflight that has not passed', [begun, preflight()], 'preflight'],
    ['a preflight that has', STARTED, 'stage'],
    ['a call without its end', [...STARTED, SENT], 'resolve_lost_reply'],
    ['a call refused', [...STARTED, SENT, refused('x')], 'stage'],
    [
      'a call that never landed',
      [...STARTED, SENT, settled({ outcome: 'absent', existing: [] })],
      'stage',
    ],
    ['all staged', [...STARTED, SENT, staged], 'wait'],
    ['nothing waiting', [...STARTED, SENT, staged, rest('collect')], 'collect'],
    ['a twin', [...AT_REST, TWIN], 'delete_rows'],
    ['a deletion without its end', [...AT_REST, TWIN, deletionSent('s')], 'resolve_lost_reply'],
    ['a deletion that does not account for each row', UNACCOUNTED, 'end'],
    [
      'the same, and a request to reconcile',
      [...UNACCOUNTED, rest('wait', true)],
      'resolve_lost_reply',
    ],
    ['all at rest', AT_REST, 'reconcile'],
    ['a round of look-ups ended', [...AT_REST, lookedUp([0, 1]), rest('done')], 'end'],
    ['rows that appeared meanwhile', [...AT_REST, lookedUp([0, 1, 2, 3]), rest('wait')], 'wait'],
    [
      'a failure that is sent again: its row leaves first',
      [...AT_REST, FAILED, rest('done'), retry()],
      'delete_rows',
    ],
    [
      'a twin of somebody who has failed: all of their rows leave',
      [
        ...[...AT_REST, FAILED, row('duplicate', 's', 0), rest('reconcile')],
        ...[deletionSent('s'), deleted('s')],
      ],
      'delete_rows',
    ],
    [
      'the account of somebody who has failed: their row leaves',
      [...AT_REST, FAILED, lookedUp([0, 1, 2, 3])],
      'delete_rows',
    ],
    [
      'an account that somebody who has failed shares: their row leaves',
      [...AT_REST, FAILED, lookedUpEntry({ shared: SHARED })],
      'delete_rows',
    ],
    [
      'somebody left out: their row leaves, and then what came meanwhile is looked for',
      [
        ...[...AT_REST, FAILED, lookedUp([1, 2, 3]), rest('done')],
        ...[corrected({ leftOut: [[0, 1, 'x']] }), deletionSent('r'), deleted('r')],
      ],
      'reconcile',
    ],
    [
      'a twin deleted after the look-ups',
      [
        ...[...AT_REST, TWIN, lookedUp([0, 1, 2, 3]), rest('done')],
        ...[deletionSent('s'), deleted('s')],
      ],
      'reconcile',
    ],
    ['its row gone', [...AT_REST, FAILED, retry(), deletionSent('r'), deleted('r')], 'stage'],
  ])('after %s', (_, entries, step) => {
    expect(nextStep(stateAfter(entries), 'migrate')).toBe(step)
  })

  it.each<[string, Goal, readonly Entry[], string]>([
    ['stages nothing', 'verify', STARTED, 'reconcile'],
    [
      'imports nobody directly',
      'verify',
      [...AT_REST, lookedUpEntry({ toImport: [1] }), rest('done')],
      'end',
    ],
    [
      'looks up whose row was deleted',
      'unblock',
      [...AT_REST, row('unresolved', 'r', 0), deletionSent('r'), deleted('r')],
      'resolve_identities',
    ],
    ['waits for nobody', 'unblock', [...STARTED, sent(0), staged], 'end'],
  ])('%s for the goal %s', (_, goal, entries, step) => {
    expect(nextStep(stateAfter(entries), goal)).toBe(step)
  })

  it.each<[string, readonly Entry[]]>([
    ['to_reconcile', [...AT_REST, lookedUp([0, 1, 2]), rest('done')]],
    ['complete', [...AT_REST, lookedUp([0, 1, 2, 3]), rest('done')]],
    ['to_correct', [...AT_REST, FAILED, lookedUp([1, 2, 3]), rest('done')]],
    ['stalled', [...AT_REST, row('stalled', 'r', 0)]],
    ['to_reconcile', [...UNACCOUNTED, row('stalled', 't', 1)]],
  ])('leaves the run %s', (status, entries) => {
    expect(finalState(stateAfter(entries))).toBe(status)
    const ended: Entry = { type: 'ended', state: 'interrupted', findings: [] }
    expect(runStatus(stateAfter([...entries, ended]))).toBe('interrupted')
    expect(runStatus(stateAfter(entries))).toBe(status)
  })
})

/** Any entries, one after the other: what a run could write, and a little more. */
const anyEntry = fc.oneof(
  ...[
    ...[SENT, staged, refused('x'), settled({ outcome: 'absent', existing: [2] })],
    ...[rest('collect'), rest('reconcile'), rest('done'), rest('wait', true)],
    ...[FAILED, TWIN, retry(), deletionSent('r', 's')],
    settled({ outcome: 'deleted', rows: ['r', 's'] }),
    settled({ outcome: 'unaccounted', deleted: ['r'], open: ['s'] }),
    lookedUpEntry({ shared: SHARED }),
    lookedUpEntry({ missing: [[0, null]] }),
  ].map((entry) => fc.constant(entry)),
  fc.subarray([0, 1, 2, 3]).map(lookedUp),
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
  it('counts each identity once, sends nothing while a call is unanswered, and is complete only when all are proved', () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
        const state = stateAfter(STARTED)
        for (const entry of entries) {
          if (!fits(state, entry)) continue
          applyEntry(state, entry)
          const counts = countsOf(state)
          expect(Object.values(counts).reduce((sum, each) => sum + each, 0)).toBe(4)
          if (state.unanswered !== undefined || state.blocked) {
            expect(['stage', 'delete_rows']).not.toContain(nextStep(state, 'migrate'))
          }
          if (finalState(state) !== 'complete') continue
          expect(counts.reconciled + counts.accepted + counts.left_out).toBe(4)
          expect(state.unanswered).toBeUndefined()
          expect(state.rows.size).toBe(0)
        }
      }),
      { numRuns: 500 },
    )
  })
})
