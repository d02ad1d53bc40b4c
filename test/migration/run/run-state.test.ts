import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  begunEntry,
  type CallResult,
  type Entry,
  type EntryOf,
  lookedUpEntry,
  readRecordIndexes,
  writeRecordIndexes,
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
  invalid: '',
  hasAccount: '',
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
const begun = (identities = 4): Entry => begunEntry({ at: 1, identities, source })
const STARTED = [begun(), preflight({ started: true })]
const sent = (records: string): Entry => ({
  type: 'sent',
  call: { kind: 'stage', batch: 1, records },
})
const refused = (code: string): Entry => settled({ outcome: 'refused', code })
const rejected = (record: number): Entry =>
  settled({ outcome: 'rejected', users: [{ record, line: record + 1, errors: [] }] })
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
  records: '0',
  taken: [],
  twice: [],
  ...results,
})
const ALL_STAGED = [sent('0-3'), staged, rest('done')]
/** The row of a record that has failed, and that is sent again. */
const SENT_AGAIN = [row('failed', 'r', 0), sent('0')]

const SENT = sent('0-3')
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

const viewOf = (state: RunState) => ({
  identities: state.identities.map((identity) => identity.state).join(' '),
  codes: state.identities.map(({ details }) => details.code).join(),
  wasSent: state.identities.map(({ wasSent }) => Number(wasSent)).join(''),
  hadLostReply: state.identities.map(({ hadLostReply }) => Number(hadLostReply)).join(''),
  phase: state.phase,
  rows: [...state.rows.keys()].join(),
  toDelete: [...state.toDelete].join(),
  toResolve: [...state.toResolve].join(),
  stalled: [...state.stalledRows.keys()].join(),
  foreign: [...state.foreignRows].join(),
  unanswered: state.unanswered,
  isUnverified: state.hasUnverifiedCall,
  blocked: state.blocked,
})
type View = Partial<ReturnType<typeof viewOf>>

const FAULTY = preflight({
  invalid: '0',
  hasAccount: '3',
  foreignRows: ['f'],
  taken: [[1, 'x']],
  twice: [[2, 'y']],
})

describe('the state of a run', () => {
  it.each<[string, readonly Entry[], View]>([
    [
      'a preflight',
      [begun(), FAULTY],
      {
        identities: 'invalid invalid invalid existing',
        codes: ',login_taken,login_twice,',
        foreign: 'f',
      },
    ],
    [
      'another preflight',
      [begun(), FAULTY, preflight()],
      { identities: 'pending pending pending pending', codes: ',,,', foreign: '' },
    ],
    [
      'another beginning',
      [begun(), FAULTY, begun(2)],
      { identities: 'pending pending', foreign: '' },
    ],
  ])('after %s', (_name, entries, view) => {
    const state = stateAfter(entries)
    expect(viewOf(state)).toMatchObject(view)
    const counted = Object.values(countsOf(state)).reduce((sum, count) => sum + count, 0)
    expect(counted).toBe(state.identities.length)
  })

  it.each<[string, readonly Entry[], View]>([
    [
      'a call',
      [sent('0-1')],
      {
        identities: 'sent sent pending pending',
        wasSent: '1100',
        unanswered: { kind: 'stage', batch: 1, recordIndexes: [0, 1] },
      },
    ],
    [
      'a reply',
      [sent('0-1'), staged],
      {
        identities: 'staged staged pending pending',
        unanswered: undefined,
        phase: 'wait',
        hadLostReply: '0000',
        isUnverified: false,
      },
    ],
    [
      'a lost reply, and accounts',
      [sent('0-1'), settled({ outcome: 'staged', by: 'accounts' })],
      { identities: 'staged staged pending pending', hadLostReply: '1100', isUnverified: true },
    ],
    [
      'a lost reply, and nobody staged',
      [sent('0-1'), settled({ outcome: 'absent', existing: '2' })],
      {
        identities: 'pending pending existing pending',
        hadLostReply: '1100',
        isUnverified: true,
        phase: 'wait',
      },
    ],
    [
      'a rejection of one of two',
      [sent('0-1'), rejected(1)],
      { identities: 'pending invalid pending pending' },
    ],
    [
      'a refusal of records that are sent again, and of one that is not',
      [
        row('failed', 'r', 0),
        corrected({ replaced: [[1, 5]] }),
        retry(),
        sent('0-2'),
        refused('x'),
      ],
      { identities: 'retry retry pending pending' },
    ],
    [
      'a failed row',
      [...ALL_STAGED, row('failed', 'r', 0)],
      { identities: 'failed staged staged staged', codes: 'E019,,,', rows: 'r', toDelete: '' },
    ],
    [
      'a second row of a record that has failed',
      [...ALL_STAGED, row('failed', 'r', 0), row('duplicate', 's', 0)],
      {
        identities: 'staged staged staged staged',
        toDelete: 's',
        toResolve: '',
        phase: 'reconcile',
      },
    ],
    [
      'a second row of another',
      [...ALL_STAGED, row('duplicate', 's', 0)],
      { identities: 'staged staged staged staged', toDelete: 's', toResolve: '', phase: 'done' },
    ],
    [
      'a row that is resolved',
      [...ALL_STAGED, row('unresolved', 'r', 0)],
      {
        identities: 'unresolved staged staged staged',
        toDelete: 'r',
        toResolve: 'r',
        phase: 'reconcile',
      },
    ],
    [
      'a row that is resolved, of a record that is not sent yet',
      [row('unresolved', 'r', 0)],
      { identities: 'pending pending pending pending', toResolve: 'r' },
    ],
    [
      'a row that has stalled',
      [...ALL_STAGED, row('stalled', 'r', 0)],
      { stalled: 'r', rows: '', phase: 'done' },
    ],
    [
      'a row that has stalled and is resolved',
      [...ALL_STAGED, row('stalled', 'r', 0), row('unresolved', 'r', 0)],
      { stalled: '', phase: 'wait' },
    ],
    ['another wait', [row('stalled', 'r', 0), rest('wait')], { stalled: '' }],
    ['another phase', [row('stalled', 'r', 0), rest('collect')], { stalled: 'r' }],
    [
      'a request to look again once all are sent',
      [sent('0-3'), settled({ outcome: 'staged', by: 'accounts' }), rest('wait', true)],
      { isUnverified: false },
    ],
    [
      'a request to look again before',
      [sent('0-2'), settled({ outcome: 'staged', by: 'accounts' }), rest('wait', true)],
      { isUnverified: true },
    ],
    [
      'look-ups',
      [
        ...ALL_STAGED,
        lookedUpEntry({
          same: [[0, 'a']],
          differs: [[1, 'b', []]],
          missing: [[2, null]],
          shared: [[3, 'd']],
        }),
      ],
      { identities: 'reconciled differs missing shared' },
    ],
    [
      'a correction of a record with a row',
      [row('failed', 'r', 0), corrected({ leftOut: [[0, 1, 'x']] })],
      { toDelete: 'r' },
    ],
    ['a correction while rows wait', [sent('0'), staged, corrected()], { phase: 'wait' }],
    ['the collection', [...SENT_AGAIN, rest('collect')], { toDelete: '' }],
    ['the reconciliation', [...SENT_AGAIN, rest('reconcile')], { toDelete: 'r' }],
    [
      'a deletion',
      [...ALL_STAGED, row('unresolved', 'r', 0), rest('done'), deletionSent('r')],
      { unanswered: { kind: 'delete', rows: ['r'] }, phase: 'reconcile' },
    ],
    [
      'its end',
      [row('unresolved', 'r', 0), deletionSent('r'), settled({ outcome: 'deleted', rows: ['r'] })],
      { rows: '', toDelete: '', toResolve: '', unanswered: undefined, blocked: false },
    ],
    [
      'a deletion that does not account for each row',
      [
        row('unresolved', 'r', 0),
        row('unresolved', 's', 1),
        deletionSent('r', 's'),
        settled({ outcome: 'unaccounted', deleted: ['r'], open: ['s'] }),
      ],
      { rows: 's', toDelete: 's', toResolve: 's', blocked: true },
    ],
    [
      'a request to look again',
      [
        row('unresolved', 'r', 0),
        deletionSent('r'),
        settled({ outcome: 'unaccounted', deleted: [], open: ['r'] }),
        rest('wait', true),
      ],
      { blocked: false, unanswered: { kind: 'delete', rows: ['r'] } },
    ],
    [
      'a request to look again at what was looked up',
      [
        ...ALL_STAGED,
        lookedUpEntry({ same: [[0, 'a']], missing: [[1, null]], shared: [[2, 'c']] }),
        corrected({ accepted: [[3, 1, 'known']] }),
        rest('wait', true),
      ],
      { identities: 'staged staged staged accepted', unanswered: undefined },
    ],
    ...[
      lookedUpEntry({ same: [[3, 'x']] }),
      lookedUpEntry({ differs: [[3, 'x', []]] }),
      lookedUpEntry({ shared: [[3, 'x']] }),
      lookedUpEntry({ missing: [[3, null]] }),
    ].map((entry): [string, Entry[], View] => [
      'a look-up, which frees the rows of those that have not failed',
      [...SENT_AGAIN, entry],
      { toDelete: 'r' },
    ]),
    [
      'an empty look-up',
      [...SENT_AGAIN, rest('done'), lookedUpEntry({})],
      { toDelete: '', phase: 'done' },
    ],
    [
      'an account that is found',
      [...ALL_STAGED, lookedUpEntry({ hasAccount: '1' })],
      { identities: 'staged existing staged staged', phase: 'reconcile' },
    ],
    [
      'a row that is found',
      [...ALL_STAGED, lookedUpEntry({ hasRow: '1' })],
      { identities: 'staged existing staged staged', phase: 'wait' },
    ],
    [
      'a record that is imported directly',
      [...ALL_STAGED, lookedUpEntry({ toImport: '1' })],
      { identities: 'staged to_import staged staged', phase: 'reconcile' },
    ],
    [
      'a record that is refused',
      [
        ...ALL_STAGED,
        lookedUpEntry({ refused: [{ record: 1, line: 2, code: 'E003', text: 'x' }] }),
      ],
      { identities: 'staged failed staged staged', codes: ',E003,,', phase: 'reconcile' },
    ],
    [
      'corrections',
      [...ALL_STAGED, corrected({ replaced: [[0, 1]], leftOut: [[1, 2, 'x']] })],
      { identities: 'retry left_out staged staged', phase: 'reconcile' },
    ],
    [
      'a retry that finds logins in use',
      [row('failed', 'r', 0), retry({ taken: [[1, 'x']], twice: [[2, 'y']] })],
      {
        identities: 'retry invalid invalid pending',
        codes: ',login_taken,login_twice,',
        toDelete: 'r',
      },
    ],
  ])('after %s (started)', (_name, entries, view) => {
    expect(viewOf(stateAfter([...STARTED, ...entries]))).toMatchObject(view)
  })

  it.each<[string, readonly Entry[]]>([
    ['it has no entry `begun`', [rest('wait')]],
    ['it has two entries `begun`', [...STARTED, begun()]],
    ['it has two entries `begun`', [begun(), corrected(), begun()]],
    ['a preflight follows the start', [...STARTED, preflight()]],
    ['a call begins before another has ended', [...STARTED, sent('0'), sent('1')]],
    ['a call ends without having begun', [...STARTED, staged]],
    ['a deletion ends like a batch', [...STARTED, deletionSent('r'), staged]],
    [
      'a batch ends like a deletion',
      [...STARTED, sent('0'), settled({ outcome: 'deleted', rows: [] })],
    ],
    ...[4, -1, 0.5].map((record): [string, Entry[]] => [
      'the journal names a record that the source lacks',
      [...STARTED, row('stalled', 'r', record)],
    ]),
    ['the journal names a record that the source lacks', [...STARTED, sent('3-4')]],
    [
      'the journal names a record that the source lacks',
      [...STARTED, lookedUpEntry({ same: [[4, 'x']] })],
    ],
    ['the journal names a record that the source lacks', [...STARTED, sent('4-3')]],
  ])('cannot be read: %s', (message, entries) => {
    expect(() => stateAfter(entries)).toThrow(
      expect.objectContaining({ code: 'bad_journal', message: expect.stringContaining(message) }),
    )
  })
})

describe('the next step of a run', () => {
  it.each<[string, readonly Entry[], string]>([
    ['an empty journal', [], 'preflight'],
    ['a preflight that has not passed', [begun(), preflight()], 'preflight'],
    ['a preflight that has', STARTED, 'stage'],
    ['a call without its end', [...STARTED, SENT], 'resolve_lost_reply'],
    ['a call refused', [...STARTED, SENT, refused('x')], 'stage'],
    [
      'a call that never landed',
      [...STARTED, SENT, settled({ outcome: 'absent', existing: '' })],
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
      [...AT_REST, lookedUpEntry({ toImport: '1' }), rest('done')],
      'end',
    ],
    [
      'looks up whose row was deleted',
      'unblock',
      [...AT_REST, row('unresolved', 'r', 0), deletionSent('r'), deleted('r')],
      'resolve_identities',
    ],
    ['waits for nobody', 'unblock', [...STARTED, sent('0'), staged], 'end'],
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

it.each([
  [[], ''],
  [[0], '0'],
  [[0, 1, 2, 5, 7, 8], '0-2,5,7-8'],
  [[3, 2, 1], '3,2,1'],
])('record indexes %j are written as %j', (indexes, text) => {
  expect(writeRecordIndexes(indexes)).toBe(text)
  expect([...readRecordIndexes(text, 9)]).toEqual(indexes)
})

/** Any entries, one after the other: what a run could write, and a little more. */
const anyEntry = fc.oneof(
  ...[
    ...[SENT, staged, refused('x'), settled({ outcome: 'absent', existing: '2' })],
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
