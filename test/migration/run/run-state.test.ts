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
  detailsOf,
  finalState,
  type Goal,
  type IdentityCode,
  type IdentityDetails,
  identityCode,
  isFailureCode,
  mayRestart,
  nextStep,
  type RunState,
  runStatus,
  sourceOf,
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

/** An entry after those of a run at rest, and what it leaves. */
interface Effect {
  readonly after?: readonly Entry[]
  /** The state of each identity, with its details. */
  readonly identities?: readonly (readonly [IdentityCode, IdentityDetails?])[]
  readonly run?: Partial<Shown>
}

/** What of a run's state an entry may change besides its identities. */
const shown = (state: RunState) => ({
  phase: state.phase,
  foreignRows: [...state.foreignRows],
  rows: [...state.rows.keys()],
  toDelete: [...state.toDelete],
  toResolve: [...state.toResolve],
  stalledRows: [...state.stalledRows.keys()],
  isDoubtful: [...state.isDoubtful],
  hasUnverifiedCall: state.hasUnverifiedCall,
  corrections: state.corrections.length,
  sources: [0, 1, 2, 3].map((recordIndex) => sourceOf(state, recordIndex)),
  unanswered: state.unanswered,
})
type Shown = ReturnType<typeof shown>

const FOUND = { invalid: [0], hasAccount: [1], foreignRows: ['f'] }
const HELD_BACK = { taken: [[2, 'held']], twice: [[3, 'line 1']] } as const
const DONE = rest('done')
const DIFFERS: EntryOf<'looked_up'>['differs'] = [[0, 'core-0', ['email']]]
const REFUSED = { record: 0, line: 1, text: 'no', heldBy: 'held' }
const WITHOUT_REASON: Entry = { ...row('failed', 'r', 0), code: undefined } as unknown as Entry

describe('an entry of the journal', () => {
  it.each<[string, readonly Entry[], Effect]>([
    [
      'a preflight: its results',
      [preflight({ ...FOUND, ...HELD_BACK })],
      {
        after: STARTED,
        identities: [
          ['invalid'],
          ['staged'],
          ['invalid', { code: 'login_taken', heldBy: 'held' }],
          ['invalid', { code: 'login_twice', text: 'line 1' }],
        ],
        run: { foreignRows: ['f'] },
      },
    ],
    [
      'a preflight once more: no results of the earlier one',
      [preflight({ ...FOUND, ...HELD_BACK }), preflight()],
      {
        after: STARTED,
        identities: [
          ['pending', {}],
          ['pending', {}],
          ['pending', {}],
          ['pending', {}],
        ],
        run: { foreignRows: [] },
      },
    ],
    [
      'a begin: no rows of others',
      [preflight(FOUND), begun],
      { identities: [['pending'], ['pending']], run: { foreignRows: [] } },
    ],
    [
      'a reply: nothing is in doubt',
      [],
      { run: { isDoubtful: [0, 0, 0, 0], hasUnverifiedCall: false } },
    ],
    [
      'accounts in place of a reply: a lost call',
      [sent(0, 1), settled({ outcome: 'staged', by: 'accounts' })],
      {
        after: STARTED,
        identities: [['staged'], ['staged'], ['pending']],
        run: { isDoubtful: [1, 1, 0, 0], hasUnverifiedCall: true, phase: 'wait' },
      },
    ],
    [
      'a call that staged nobody: who is there all the same waits',
      [sent(0, 1), settled({ outcome: 'absent', existing: [1] })],
      {
        after: STARTED,
        identities: [['pending'], ['staged']],
        run: { isDoubtful: [1, 1, 0, 0], hasUnverifiedCall: true, phase: 'wait' },
      },
    ],
    [
      'a record that was rejected',
      [
        sent(0),
        settled({
          outcome: 'rejected',
          users: [{ record: 0, line: 1, errors: ['bad'], code: 'x' }],
        }),
      ],
      {
        after: STARTED,
        identities: [
          ['invalid', { code: 'x', errors: [{ field: '', code: 'rejected', message: 'bad' }] }],
        ],
      },
    ],
    [
      'a deletion: its rows are gone',
      [row('unresolved', 'r', 0), deletionSent('r'), deleted('r')],
      { run: { rows: [], toDelete: [], toResolve: [] } },
    ],
    [
      'a deletion not accounted for: the rows that are gone',
      [
        ...[row('unresolved', 'r', 0), row('unresolved', 's', 1), deletionSent('r', 's')],
        settled({ outcome: 'unaccounted', deleted: ['r'], open: ['s'] }),
      ],
      { run: { rows: ['s'], toDelete: ['s'], toResolve: ['s'] } },
    ],
    [
      'a failed row: its reason',
      [FAILED, { ...row('failed', 's', 1), text: 'no', heldBy: 'held' } as Entry],
      {
        identities: [
          ['failed', { rowId: 'r', code: 'E019' }],
          ['failed', { rowId: 's', code: 'E019', text: 'no', heldBy: 'held' }],
        ],
        run: { rows: ['r', 's'], toDelete: [] },
      },
    ],
    [
      'a failed row without a reason',
      [WITHOUT_REASON],
      { identities: [['failed', { rowId: 'r' }]] },
    ],
    [
      'a twin: leaves without a look-up, and takes nothing back',
      [lookedUp([1]), DONE, TWIN],
      {
        identities: [['staged'], ['reconciled', { coreUserId: 'core-1' }]],
        run: { toDelete: ['s'], toResolve: [], phase: 'done' },
      },
    ],
    [
      'a twin of somebody who has failed: looked for again',
      [FAILED, DONE, row('duplicate', 's', 0)],
      { identities: [['staged']], run: { toDelete: ['s'], phase: 'reconcile' } },
    ],
    [
      'an unresolved row: its identity is looked up',
      [DONE, row('unresolved', 'r', 0)],
      {
        identities: [['unresolved']],
        run: { toDelete: ['r'], toResolve: ['r'], phase: 'reconcile' },
      },
    ],
    [
      'an unresolved row of somebody decided on: changes nobody',
      [corrected({ leftOut: [[0, 1, 'x']] }), row('unresolved', 'r', 0)],
      { identities: [['left_out', { reason: 'x' }]], run: { toResolve: ['r'] } },
    ],
    [
      'a stalled row that is unresolved: the others are waited for',
      [row('stalled', 'r', 0), row('stalled', 's', 1), row('unresolved', 'r', 0)],
      { run: { stalledRows: ['s'], phase: 'wait' } },
    ],
    [
      'a rest: stalled rows stay until the run waits again',
      [row('stalled', 'r', 0), rest('collect')],
      { run: { stalledRows: ['r'], phase: 'collect' } },
    ],
    [
      'a wait: no rows have stalled',
      [row('stalled', 'r', 0), rest('wait')],
      { run: { stalledRows: [], phase: 'wait' } },
    ],
    [
      'a request to look up again: also who was reconciled',
      [
        ...[deletionSent('x'), settled({ outcome: 'absent', existing: [] })],
        ...[lookedUp([0]), corrected({ accepted: [[1, 2, 'x']] }), rest('wait', true)],
      ],
      {
        identities: [
          ['staged', { coreUserId: 'core-0' }],
          ['accepted', { reason: 'x' }],
        ],
        run: { hasUnverifiedCall: false },
      },
    ],
    [
      'a request to look up again: the deletion that was open is a lost call',
      [...UNACCOUNTED.slice(AT_REST.length), rest('wait', true)],
      { run: { unanswered: { kind: 'delete', rows: ['s'] } } },
    ],
    [
      'look-ups: what they found',
      [
        lookedUpEntry({ differs: DIFFERS, missing: [[1, 'held']] }),
        lookedUpEntry({ shared: [...SHARED, [2, 'core-0']], missing: [[3, null]] }),
      ],
      {
        identities: [
          ['shared', { coreUserId: 'core-0', differences: ['email'] }],
          ['shared', { coreUserId: 'core-0' }],
          ['shared', { coreUserId: 'core-0' }],
          ['missing', {}],
        ],
      },
    ],
    ...(
      [
        ['same', { same: [[0, 'core-0']] }],
        ['differs', { differs: DIFFERS }],
        ['missing', { missing: [[0, null]] }],
        ['shared', { shared: [[0, 'core-0']] }],
      ] as const
    ).map(([name, finding]): [string, readonly Entry[], Effect] => [
      `a look-up of somebody who has failed, ${name}: their row leaves`,
      [FAILED, DONE, lookedUpEntry(finding)],
      { run: { toDelete: ['r'], phase: 'done' } },
    ]),
    ...(
      [
        ['an account', { hasAccount: [0] }, 'staged', 'reconcile'],
        ['a row', { hasRow: [0] }, 'staged', 'wait'],
        ['neither: imported directly', { toImport: [0] }, 'to_import', 'reconcile'],
        ['neither: refused', { refused: [REFUSED] }, 'failed', 'reconcile'],
        ['nothing', {}, 'failed', 'done'],
      ] as const
    ).map(([name, finding, code, phase]): [string, readonly Entry[], Effect] => [
      `a look-up of somebody unresolved, ${name}`,
      [FAILED, DONE, lookedUpEntry(finding)],
      { identities: [[code]], run: { toDelete: [], phase } },
    ]),
    [
      'a refused import: its reason',
      [lookedUpEntry({ refused: [REFUSED] })],
      { identities: [['failed', { text: 'no', heldBy: 'held' }]] },
    ],
    [
      'corrections: each decision, with what was known',
      [
        ...[FAILED, lookedUpEntry({ differs: [[1, 'core-1', ['email']]] }), DONE],
        corrected({ replaced: [[2, 1]], leftOut: [[0, 2, 'gone']], accepted: [[1, 3, 'fine']] }),
      ],
      {
        identities: [
          ['left_out', { rowId: 'r', code: 'E019', reason: 'gone' }],
          ['accepted', { coreUserId: 'core-1', differences: ['email'], reason: 'fine' }],
          ['pending', {}],
        ],
        run: {
          ...{ corrections: 1, sources: [0, 0, 1, 0], isDoubtful: [0, 0, 1, 0] },
          ...{ toDelete: ['r'], phase: 'reconcile' },
        },
      },
    ],
    [
      'a retry: who is sent again, and who is held back',
      [FAILED, retry(HELD_BACK)],
      {
        identities: [
          ['pending', {}],
          ['staged'],
          ['invalid', { code: 'login_taken', heldBy: 'held' }],
          ['invalid', { code: 'login_twice', text: 'line 1' }],
        ],
        run: { toDelete: ['r'], isDoubtful: [1, 0, 0, 0] },
      },
    ],
  ])('%s', (_, entries, { after = AT_REST, identities = [], run = {} }) => {
    const state = stateAfter([...after, ...entries])
    for (const [recordIndex, [code, details]] of identities.entries()) {
      expect(identityCode(state, recordIndex)).toBe(code)
      if (details !== undefined) expect(detailsOf(state, recordIndex)).toStrictEqual(details)
    }
    expect(shown(state)).toMatchObject(run)
  })

  it('a begin may follow until something is sent or corrected', () => {
    const entries: readonly (readonly [readonly Entry[], boolean])[] = [
      [[], true],
      [[begun, preflight()], true],
      [STARTED, false],
      [[begun, preflight(), corrected()], false],
    ]
    for (const [given, may] of entries) expect(mayRestart(stateAfter(given))).toBe(may)
  })

  it('names a failure by a code of this package, or by E and three digits', () => {
    for (const code of ['login_taken', 'E003']) expect(isFailureCode(code)).toBe(true)
    for (const code of ['taken', 'E03', 'E0031', 'xE003', 3, undefined]) {
      expect(isFailureCode(code)).toBe(false)
    }
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
