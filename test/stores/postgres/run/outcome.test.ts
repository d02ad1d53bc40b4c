import { describe, expect, it, vi } from 'vitest'
import { isServerFailure } from '../../../../src/stores/postgres/run/live-runs.js'
import {
  type CommitFailure,
  classifyFailure,
  type EndedRun,
  outcomeOfCommit,
  outcomeOfRollback,
  type RecordedEnding,
  resolveUnansweredCommit,
  unavailable as runUnavailable,
  type TransactionEnding,
  transactionEnding,
} from '../../../../src/stores/postgres/run/outcome.js'
import type { StatementLimits, TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { createStatements } from '../../../../src/stores/postgres/sql/statements.js'
import type { PostgresLimits, StoreContext } from '../../../../src/stores/postgres/store-context.js'

/** What a SQLSTATE comes to at the record, and what at COMMIT. */
const TABLE: readonly (readonly [readonly (string | undefined)[], CommitFailure, CommitFailure])[] =
  [
    [['23505'], 'duplicate', 'duplicate'],
    [['40001', '40P01', '55P03'], 'retryable', 'retryable'],
    [[undefined, '08000', '08006', '57014', '57P01', '58030', 'XX000'], 'unavailable', 'unclear'],
    [['53000', '53100', '53300', '25006', '25P03', '25P04'], 'unavailable', 'unavailable'],
    [['25P02', '23503', '42501', '42P01', '40002', 'P0001', '0A000'], 'refused', 'refused'],
  ]

it('an answer below 400 commits, a 4xx refuses, and 429 and 5xx roll back', () => {
  const result = Buffer.from('the answer')
  const of = (status: number) => transactionEnding({ type: 'answered', status, result }).type
  for (const status of [100, 200, 399]) expect(of(status)).toBe('commit')
  for (const status of [400, 428, 430, 499]) expect(of(status)).toBe('refuse')
  for (const status of [429, 500, 999]) expect(of(status)).toBe('roll_back')
  const rollBack = (isReleased: boolean) => ({ type: 'roll_back', isReleased })
  expect(transactionEnding({ type: 'answered', status: 500, result })).toEqual(rollBack(false))
  expect(transactionEnding({ type: 'aborted' })).toEqual(rollBack(false))
  expect(transactionEnding({ type: 'released' })).toEqual(rollBack(true))
})

describe('A transaction that failed at its end', () => {
  it.each(TABLE)('with %j: %s at the record, %s at COMMIT', (sqlStates, atRecord, atCommit) => {
    for (const sqlState of sqlStates) {
      expect(classifyFailure('record', sqlState)).toBe(atRecord)
      expect(classifyFailure('commit', sqlState)).toBe(atCommit)
    }
  })

  it('a statement of a handler fails because of the server with class 53, 57P01 to 57P05, 25P03, 25P04 or 25006', () => {
    const states = ['53000', '53100', '57P01', '57P05', '25006', '25P03', '25P04']
    for (const state of states) expect(isServerFailure(state)).toBe(true)
    const others = [undefined, '57014', '57000', '25P02', '25001', '23505', '40001', '58030']
    for (const state of others) expect(isServerFailure(state)).toBe(false)
  })
})

/** What the database answers: the end of the wait for the key's lock, and the record. */
interface Answers {
  readonly lock?: (limits?: StatementLimits) => void
  readonly record?: () => string | undefined
  /** The reply to a separate insert, given its text. */
  readonly insert?: (text: string) => 'yes' | 'no'
}

const result = Buffer.from('the answer')
const OWN = '7'
/** A record as it is read; `run` is the transaction that has written it, if it was one. */
const stored = (request: 'same' | 'other', run: string, kept?: Uint8Array): string =>
  [request, run, ...(kept ? [Buffer.from(kept).toString('base64')] : [])].join(' ')
const failure = (code?: string): Error => Object.assign(new Error('failed'), { code })
const fail = (code?: string) => (): never => {
  throw failure(code)
}

/** Fails at its first call. */
function firstFails<T>(then: () => T): () => T {
  let calls = 0
  return () => {
    calls += 1
    if (calls === 1) throw failure()
    return then()
  }
}

function storeOf(
  { lock, record, insert }: Answers,
  limits: Partial<PostgresLimits> = {},
): StoreContext<never> {
  const query: TransactionRunner<never>['query'] = async (_tx, text, _values, given) => {
    if (text.includes('pg_advisory_xact_lock')) {
      lock?.(given)
      return [{ ended: '' }]
    }
    if (text.includes('insert into')) return [{ kept: insert?.(text) }]
    const line = record?.()
    return line === undefined ? [] : [{ record: line }]
  }
  return {
    runner: { query } as unknown as TransactionRunner<never>,
    schema: 'service_auth',
    statements: createStatements('service_auth'),
    limits: { acquireMs: 50, transactionMs: 1000, resolveMs: 150, ...limits },
  }
}

/** A run whose COMMIT was attempted. */
const RUN: EndedRun = {
  request: { hasKey: true, retentionMs: Number.POSITIVE_INFINITY },
  ids: { id: '00000000000000000000000000000000', fingerprint: 'ab', keyLock: '1' },
  token: undefined,
  live: { usedTransaction: true },
  fence: 7,
  answeredAt: performance.now(),
}
const COMMIT: RecordedEnding = { type: 'commit', result }

const resolve = (
  store: StoreContext<never>,
  { run = RUN, ending = COMMIT }: { run?: EndedRun; ending?: RecordedEnding } = {},
) => resolveUnansweredCommit(store, run, ending)

const unavailable = { outcome: 'undone', reason: 'store_unavailable' }
const unknown = { ...unavailable, reason: 'commit_unknown' }
const committed = { outcome: 'answered', end: 'result_kept', isTransactionUnused: false }
const finished = { outcome: 'finished', result }
const other = Buffer.from('another answer')

describe('A COMMIT without a reply', () => {
  it.each<[string, Answers, object]>([
    [
      'took effect if its run wrote the record',
      { record: () => stored('same', OWN, result) },
      committed,
    ],
    [
      'took effect, and is asked again after a failure',
      { record: firstFails(() => stored('same', OWN, result)) },
      committed,
    ],
    [
      'took none if another run wrote the record, although with the same result',
      { record: () => stored('same', '8', result) },
      { outcome: 'overtaken', by: finished },
    ],
    [
      'took none if a refusal wrote the record, in a statement of its own',
      { record: () => stored('same', 'alone', other) },
      { outcome: 'overtaken', by: { ...finished, result: other } },
    ],
    [
      'took none if another run wrote a record without a result',
      { record: () => stored('same', '8') },
      { outcome: 'overtaken', by: { outcome: 'result_not_stored' } },
    ],
    [
      'took none if the record belongs to another request',
      { record: () => stored('other', '8') },
      { outcome: 'overtaken', by: { outcome: 'mismatch' } },
    ],
    ['took none if there is no record', {}, unavailable],
    ['is unknown while the transaction holds its lock', { lock: fail('55P03') }, unknown],
    ['is unknown if the database cannot be reached', { lock: fail() }, unknown],
  ])('%s', async (_name, answers, outcome) => {
    expect(await resolve(storeOf(answers))).toEqual(outcome)
  })

  it('is unknown without a record, and nothing is looked up', async () => {
    const lock = vi.fn()
    const run = { ...RUN, request: { ...RUN.request, hasKey: false } }
    expect(await resolve(storeOf({ lock }), { run })).toEqual(unknown)
    expect(lock).not.toHaveBeenCalled()
  })

  it('is unknown without a record that may have expired', async () => {
    const run = { ...RUN, request: { hasKey: true, retentionMs: 0 } }
    expect(await resolve(storeOf({}), { run })).toEqual(unknown)
    const store = storeOf({ record: () => stored('same', OWN, result) })
    expect(await resolve(store, { run })).toEqual(committed)
  })

  it('waits for a connection and for the lock no longer than it may', async () => {
    const lock = vi.fn((_limits?: StatementLimits) => fail('55P03')())
    await resolve(storeOf({ lock }, { acquireMs: 50, resolveMs: 150 }))
    await resolve(storeOf({ lock }, { acquireMs: 500, resolveMs: 150 }))
    const [short, long] = lock.mock.calls.map(([limits]) => limits)
    expect(short).toEqual({ acquireMs: 50, statementMs: expect.any(Number) })
    expect(long?.acquireMs).toBe(long?.statementMs)
    expect(long?.statementMs).toBeLessThanOrEqual(150)
    expect(lock).toHaveBeenCalledTimes(2)
  })

  it('is not looked up with a limit of 0, which Postgres takes for none', async () => {
    const lock = vi.fn()
    const store = storeOf({ lock }, { resolveMs: 0.9 })
    expect(await resolve(store)).toEqual(unknown)
    expect(lock).not.toHaveBeenCalled()
  })

  it('does not keep the process alive between two attempts', async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const outcome = resolve(storeOf({ lock: fail() }))
    // Runs what is due, and no timer.
    await new Promise(process.nextTick)
    expect(timers()).toBe(before)
    expect(await outcome).toEqual(unknown)
  })

  it('of a refusal leaves the answer to the caller if another run committed', async () => {
    const store = storeOf({ record: () => stored('other', '8') })
    const ending: RecordedEnding = { type: 'refuse', result }
    expect(await resolve(store, { ending })).toEqual({ outcome: 'answered', end: 'conflict' })
  })
})

const REFUSE: RecordedEnding = { type: 'refuse', result }
const failed = (code?: string) => ({ type: 'failed', error: failure(code) }) as const
const conflict = { outcome: 'undone', reason: 'conflict', retryAfterSeconds: 0 }
const TOO_LARGE = { outcome: 'answered', end: 'result_too_large' }

it.each<[string, Partial<EndedRun>, RecordedEnding, object]>([
  ['keeps its result', {}, COMMIT, committed],
  [
    'tells if nothing used its transaction',
    { live: { usedTransaction: false } },
    COMMIT,
    { ...committed, isTransactionUnused: true },
  ],
  ['tells it if no handler ran', { live: undefined }, COMMIT, { isTransactionUnused: true }],
  ['does not tell it of a refusal', { live: undefined }, REFUSE, { isTransactionUnused: false }],
  ['tells that the result was too large', {}, { type: 'commit', result: undefined }, TOO_LARGE],
  [
    'has no end without a key',
    { request: { ...RUN.request, hasKey: false } },
    COMMIT,
    { end: undefined },
  ],
])('a run that has committed %s', async (_name, changes, ending, outcome) => {
  const commit = { step: 'commit', ending, settlement: { type: 'committed' } } as const
  const found = await outcomeOfCommit(storeOf({}), { ...RUN, ...changes }, commit)
  expect(found).toMatchObject(outcome)
})

describe('A run whose record, or COMMIT, failed', () => {
  const outcomeOf = (
    code: string | undefined,
    { answers = {}, ending = COMMIT }: { answers?: Answers; ending?: RecordedEnding } = {},
  ) => outcomeOfCommit(storeOf(answers), RUN, { step: 'record', ending, settlement: failed(code) })

  it('may be repeated at once after a conflict', async () => {
    expect(await outcomeOf('40001')).toEqual({ ...conflict, sqlState: '40001' })
  })

  it('is refused with what the server said, and by no state where it told none', async () => {
    const refused = { outcome: 'commit_refused', cause: expect.any(Error) }
    expect(await outcomeOf('23503')).toEqual({ ...refused, sqlState: '23503' })
    expect(await outcomeOf('23505')).toEqual({ ...refused, sqlState: '23505' })
    expect(await outcomeOf(undefined)).toEqual(unavailable)
  })

  it('was overtaken by who wrote the record', async () => {
    const answers = { record: () => stored('same', '8', result) }
    expect(await outcomeOf('23505', { answers })).toEqual({ outcome: 'overtaken', by: finished })
    expect(await outcomeOf('23505', { answers, ending: REFUSE })).toEqual({
      outcome: 'answered',
      end: 'conflict',
    })
    expect(await outcomeOf('23505', { answers: { record: fail() } })).toEqual(unavailable)
  })

  it('is uncoupled if the handler had ended the transaction', async () => {
    const { text } = storeOf({}).statements.assertInTransaction(OWN)
    const [, words, marker] = /'(express-service-auth: [^']*)', '([^']+)'/.exec(text) ?? []
    const error = new Error(`invalid input syntax: "${words}${marker}"`)
    const settlement = { type: 'failed', error } as const
    const ended = { step: 'record', ending: COMMIT, settlement } as const
    const run = { ...RUN, request: { hasKey: true, retentionMs: 1000 } }
    const insert = vi.fn(() => 'yes' as const)
    const uncoupled = { outcome: 'answered', end: 'uncoupled' }
    expect(await outcomeOfCommit(storeOf({ insert }), run, ended)).toEqual(uncoupled)
    expect(insert).toHaveBeenCalledOnce()
  })

  it('is looked up where COMMIT got no reply', async () => {
    const answers = { record: () => stored('same', OWN, result) }
    const commit = { step: 'commit', ending: COMMIT } as const
    for (const settlement of [failed('08006'), { type: 'pending' }] as const) {
      const outcome = await outcomeOfCommit(storeOf(answers), RUN, { ...commit, settlement })
      expect(outcome).toMatchObject(committed)
    }
  })

  it('ends with an error of wiring if the runner has committed before its work was done', async () => {
    const settlement = { type: 'committed' } as const
    const early = { step: 'record', ending: COMMIT, settlement } as const
    await expect(outcomeOfCommit(storeOf({}), RUN, early)).rejects.toThrow('only when it has')
    const rolledBack = { ending: REFUSE, isUncoupled: false, settlement }
    await expect(outcomeOfRollback(storeOf({}), RUN, rolledBack)).rejects.toThrow('only when')
    expect(() => runUnavailable(settlement)).toThrow('before it resolves')
  })
})

it('a request without a query is undone, by a conflict if its snapshot was too old', () => {
  expect(runUnavailable(failed('40001'))).toEqual({ ...conflict, sqlState: '40001' })
  expect(runUnavailable(failed('57P03'))).toEqual({ ...unavailable, sqlState: '57P03' })
  expect(runUnavailable(failed())).toEqual(unavailable)
  expect(runUnavailable({ type: 'pending' })).toEqual(unavailable)
})

describe('An answer whose writes were rolled back', () => {
  const KEPT = { ...RUN, request: { hasKey: true, retentionMs: 1000 } }
  const TOKEN = { ids: { id: '00000000000000000000000000000001', lock: '2' }, ttlMs: 1000 }
  const outcomeOf = (
    ending: TransactionEnding,
    { answers = {}, run = KEPT, isUncoupled = false }: RolledBackCase = {},
  ) =>
    outcomeOfRollback(storeOf(answers), run, { ending, isUncoupled, settlement: failed('25P02') })
  interface RolledBackCase {
    readonly answers?: Answers
    readonly run?: EndedRun
    readonly isUncoupled?: boolean
  }

  it.each<[string, Answers['insert'], string]>([
    ['kept', () => 'yes', 'refusal_kept'],
    ['not kept where another run has the record', () => 'no', 'conflict'],
    ['not kept where another run writes it now', fail('23505'), 'conflict'],
    ['lost where the database fails', fail('53100'), 'result_lost'],
  ])('is %s, if it is a refusal', async (_name, insert, end) => {
    const outcome = await outcomeOf(REFUSE, { answers: { ...(insert && { insert }) } })
    expect(outcome).toEqual({ outcome: 'answered', end })
  })

  it('is not stored without a key, or if it is no refusal', async () => {
    const insert = vi.fn(() => 'yes' as const)
    const run = { ...RUN, request: { ...RUN.request, hasKey: false } }
    const endings = [
      await outcomeOf(REFUSE, { answers: { insert }, run }),
      await outcomeOf({ type: 'roll_back', isReleased: false }, { answers: { insert } }),
      await outcomeOf({ type: 'roll_back', isReleased: true }, { answers: { insert } }),
    ]
    const ends = ['rolled_back', 'rolled_back', 'released']
    expect(endings).toEqual(ends.map((end) => ({ outcome: 'answered', end })))
    expect(insert).not.toHaveBeenCalled()
  })

  it('needs its token only if the handler has not ended the transaction itself', async () => {
    const insert = vi.fn((_text: string) => 'yes' as const)
    const given = { answers: { insert }, run: { ...KEPT, token: TOKEN } }
    await outcomeOf(REFUSE, given)
    expect(await outcomeOf(REFUSE, { ...given, isUncoupled: true })).toEqual({
      outcome: 'answered',
      end: 'uncoupled',
    })
    const needs = insert.mock.calls.map(([text]) => text.includes('exists (select from used)'))
    expect(needs).toEqual([true, false])
  })
})
