import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CoupledEnding } from '../../../../src/idempotency/coupled/coupled-store.js'
import {
  createRunControl,
  findingOf,
  nextStage,
  type RecordedEnding,
  type RunStage,
  type StageEvent,
} from '../../../../src/stores/postgres/run/run-stage.js'
import type { BeginResult } from '../../../../src/stores/postgres/sql/begin-statements.js'
import type { RecordRow } from '../../../../src/stores/postgres/sql/record-statements.js'
import { collectUnhandledErrors } from '../../../support/observe/unhandled-errors.js'

const result = Buffer.from('the answer')
const record: RecordRow = { isSame: true, result, usedToken: true }
const commit: RecordedEnding = { type: 'commit', result }
const refuse: RecordedEnding = { type: 'refuse', result }
const rollBack: CoupledEnding = { type: 'roll_back' }

const nothing: BeginResult = { found: 'nothing', fence: '7' }
const begun = (result: BeginResult): StageEvent => ({ type: 'begun', result })
const answered = (ending: CoupledEnding, keepsWrites = false): StageEvent => ({
  type: 'answered',
  ending,
  keepsWrites,
})

const STAGES: Readonly<Record<RunStage['name'], RunStage>> = {
  beginning: { name: 'beginning' },
  skipped: { name: 'skipped', finding: { outcome: 'running' } },
  running: { name: 'running' },
  rolling_back: { name: 'rolling_back', ending: rollBack },
  writing_record: { name: 'writing_record', ending: commit },
  committing: { name: 'committing', ending: commit },
  failed: { name: 'failed' },
  timed_out: { name: 'timed_out', reason: 'timed_out' },
}

const EVENTS: Readonly<Record<string, StageEvent>> = {
  'the lock is free': begun(nothing),
  'there is a record': begun({ found: 'record', record }),
  'another run has the lock': begun({ found: 'other_run' }),
  'a success': answered(commit),
  'a refusal': answered(refuse),
  'a refusal that keeps its writes': answered(refuse, true),
  'a failure': answered(rollBack),
  'a failure that keeps its writes': answered(rollBack, true),
  'the server fails it': { type: 'server_failed' },
  'it commits': { type: 'commit' },
  'its time limit is reached': { type: 'timeout' },
}

/** Whatever is not here changes nothing. */
const CHANGES: Readonly<Partial<Record<RunStage['name'], Readonly<Record<string, RunStage>>>>> = {
  beginning: {
    'the lock is free': { name: 'running' },
    'there is a record': { name: 'skipped', finding: findingOf(record) },
    'another run has the lock': { name: 'skipped', finding: { outcome: 'running' } },
    'its time limit is reached': { name: 'timed_out', reason: 'store_unavailable' },
  },
  running: {
    'a success': { name: 'writing_record', ending: commit },
    'a refusal': { name: 'rolling_back', ending: refuse },
    'a refusal that keeps its writes': { name: 'writing_record', ending: refuse },
    'a failure': { name: 'rolling_back', ending: rollBack },
    'a failure that keeps its writes': { name: 'rolling_back', ending: rollBack },
    'its time limit is reached': { name: 'timed_out', reason: 'timed_out' },
  },
  rolling_back: { 'the server fails it': { name: 'failed' } },
  writing_record: {
    'the server fails it': { name: 'failed' },
    'it commits': { name: 'committing', ending: commit },
    'its time limit is reached': { name: 'timed_out', reason: 'timed_out' },
  },
}

const everyStep = Object.entries(STAGES).flatMap(([at, stage]) =>
  Object.entries(EVENTS).map(([name, event]) => ({
    at: at as RunStage['name'],
    stage,
    name,
    event,
  })),
)

describe('The stage of a run', () => {
  it.each(everyStep)('$at, then $name', ({ at, stage, name, event }) => {
    expect(nextStage(stage, event)).toEqual(CHANGES[at]?.[name] ?? stage)
  })

  it.each<[string, RecordRow, ReturnType<typeof findingOf>]>([
    ['of the same request', record, { outcome: 'finished', result, usedToken: true }],
    [
      'of the same request, without its answer',
      { isSame: true, result: undefined, usedToken: false },
      { outcome: 'result_not_stored' },
    ],
    [
      'of another request',
      { isSame: false, result: undefined, usedToken: false },
      { outcome: 'mismatch' },
    ],
  ])('a record %s skips the run', (_name, stored, finding) => {
    expect(findingOf(stored)).toEqual(finding)
    const event = begun({ found: 'record', record: stored })
    expect(nextStage(STAGES.beginning, event)).toEqual({ name: 'skipped', finding })
  })

  it('commits only a run that has answered, and never one that timed out or was skipped', () => {
    const events = fc.array(fc.constantFrom(...Object.values(EVENTS)), { maxLength: 12 })
    fc.assert(
      fc.property(events, (happened) => {
        const stages: RunStage[] = [STAGES.beginning]
        for (const event of happened) stages.push(nextStage(stages.at(-1) as RunStage, event))
        const names = stages.map(({ name }) => name)
        const committing = names.indexOf('committing')
        if (committing === -1) return
        const passed = [...new Set(names.slice(0, committing))]
        expect(passed).toEqual(['beginning', 'running', 'writing_record'])
        expect(new Set(names.slice(committing))).toEqual(new Set(['committing']))
      }),
    )
  })
})

describe('The control of a run', () => {
  const forever = new Promise<never>(() => {})

  it('times out when its timer ends, and aborts its signal', async () => {
    const control = createRunControl()
    const { signal } = control
    expect(control.stage).toEqual({ name: 'beginning' })
    control.startTimer(20)
    await expect(control.withinTimeLimit(forever)).rejects.toThrow('timed out')
    expect(control.stage).toEqual({ name: 'timed_out', reason: 'store_unavailable' })
    expect(signal.aborted).toBe(true)
    expect(control.signal).toBe(signal)
  })

  it('has an aborted signal if it is read after the timeout, and none is aborted before', () => {
    const control = createRunControl()
    expect(createRunControl().signal.aborted).toBe(false)
    control.dispatch({ type: 'timeout' })
    expect(control.signal.aborted).toBe(true)
  })

  it('settles as the work does in time, and restarts or stops its timer', async () => {
    const control = createRunControl()
    control.startTimer(20)
    control.startTimer(60_000)
    expect(await control.withinTimeLimit(delay(60, 'value'))).toBe('value')
    control.startTimer(20)
    control.stopTimer()
    await delay(60)
    expect(control.stage).toEqual({ name: 'beginning' })
  })

  it('rejects nothing that nobody waits for', async () => {
    const unhandled = collectUnhandledErrors()
    const control = createRunControl()
    control.startTimer(1)
    await delay(20)
    expect(control.stage.name).toBe('timed_out')
    expect(unhandled).toEqual([])
  })

  it('aborts its signal only when it times out', () => {
    const control = createRunControl()
    const { signal } = control
    control.dispatch(begun(nothing))
    expect(signal.aborted).toBe(false)
  })

  it('does not keep the process alive', () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const control = createRunControl()
    control.startTimer(60_000)
    expect(timers()).toBe(before)
    control.stopTimer()
  })
})
