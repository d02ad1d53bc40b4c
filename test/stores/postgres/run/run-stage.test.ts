import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CoupledEnding } from '../../../../src/idempotency/coupled/coupled-store.js'
import {
  advance,
  findingOf,
  type KeptEnding,
  type Life,
  type LifeEvent,
} from '../../../../src/stores/postgres/run/run-stage.js'
import type { KeptRecord, Opened } from '../../../../src/stores/postgres/sql/statements.js'

const result = Buffer.from('the answer')
const record: KeptRecord = { isSame: true, result, usedToken: true }
const commit: KeptEnding = { type: 'commit', result }
const refuse: KeptEnding = { type: 'refuse', result }
const rollBack: CoupledEnding = { type: 'roll_back' }

const taken = (found?: KeptRecord): Opened => ({ lock: 'taken', fence: '7', record: found })
const opened = (found: Opened): LifeEvent => ({ type: 'opened', opened: found })
const answered = (ending: CoupledEnding, keepsWrites = false): LifeEvent => ({
  type: 'answered',
  ending,
  keepsWrites,
})

const LIVES: Readonly<Record<Life['at'], Life>> = {
  opening: { at: 'opening' },
  known: { at: 'known', finding: { outcome: 'running' } },
  running: { at: 'running' },
  undoing: { at: 'undoing', ending: rollBack },
  recording: { at: 'recording', ending: commit },
  committing: { at: 'committing', ending: commit },
  failed: { at: 'failed' },
  given_up: { at: 'given_up', reason: 'timed_out' },
}

const EVENTS: Readonly<Record<string, LifeEvent>> = {
  'the locks are free': opened(taken()),
  'the locks are free, and there is a record': opened(taken(record)),
  'another run has the lock': opened({ lock: 'running', record: undefined }),
  'a success': answered(commit),
  'a refusal': answered(refuse),
  'a refusal that keeps its writes': answered(refuse, true),
  'a failure': answered(rollBack),
  'a failure that keeps its writes': answered(rollBack, true),
  'the server fails it': { type: 'failed' },
  'it commits': { type: 'commits' },
  'its time is over': { type: 'struck' },
}

/** Whatever is not here changes nothing. */
const CHANGES: Readonly<Partial<Record<Life['at'], Readonly<Record<string, Life>>>>> = {
  opening: {
    'the locks are free': { at: 'running' },
    'the locks are free, and there is a record': { at: 'known', finding: findingOf(record) },
    'another run has the lock': { at: 'known', finding: { outcome: 'running' } },
    'its time is over': { at: 'given_up', reason: 'store_unavailable' },
  },
  running: {
    'a success': { at: 'recording', ending: commit },
    'a refusal': { at: 'undoing', ending: refuse },
    'a refusal that keeps its writes': { at: 'recording', ending: refuse },
    'a failure': { at: 'undoing', ending: rollBack },
    'a failure that keeps its writes': { at: 'undoing', ending: rollBack },
    'its time is over': { at: 'given_up', reason: 'timed_out' },
  },
  undoing: { 'the server fails it': { at: 'failed' } },
  recording: {
    'the server fails it': { at: 'failed' },
    'it commits': { at: 'committing', ending: commit },
    'its time is over': { at: 'given_up', reason: 'timed_out' },
  },
}

const everyStep = Object.entries(LIVES).flatMap(([at, life]) =>
  Object.entries(EVENTS).map(([name, event]) => ({ at: at as Life['at'], life, name, event })),
)

describe('The life of a run', () => {
  test.each(everyStep)('$at, then $name', ({ at, life, name, event }) => {
    expect(advance(life, event)).toEqual(CHANGES[at]?.[name] ?? life)
  })

  test.each<[string, KeptRecord, ReturnType<typeof findingOf>]>([
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
  ])('a record %s wins over each lock', (_name, found, finding) => {
    expect(findingOf(found)).toEqual(finding)
    for (const one of [taken(found), { lock: 'running', record: found } as const]) {
      expect(advance(LIVES.opening, opened(one))).toEqual({ at: 'known', finding })
    }
  })

  test('commits only what has answered, and never what was given up or known', () => {
    const events = fc.array(fc.constantFrom(...Object.values(EVENTS)), { maxLength: 12 })
    fc.assert(
      fc.property(events, (happened) => {
        const lives: Life[] = [LIVES.opening]
        for (const event of happened) lives.push(advance(lives.at(-1) as Life, event))
        const stages = lives.map(({ at }) => at)
        const committing = stages.indexOf('committing')
        if (committing === -1) return
        const passed = [...new Set(stages.slice(0, committing))]
        expect(passed).toEqual(['opening', 'running', 'recording'])
        expect(new Set(stages.slice(committing))).toEqual(new Set(['committing']))
      }),
    )
  })
})
