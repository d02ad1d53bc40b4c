import { describe, expect, it } from 'vitest'
import { SCRIPT } from '../../example-app/control-room/tour/script.js'
import {
  advance,
  newTour,
  type Played,
  planFor,
  type TourState,
} from '../../example-app/control-room/tour/tour-state.js'
import type { Stage } from '../../example-app/story/stage.js'
import { storySteps } from '../../example-app/story/steps.js'

const NOW = 1_800_000_000_000
const WELL: Played = { status: 200, seen: 'accepted by serviceAuth', faults: [] }

const indexOf = (title: string) => SCRIPT.findIndex((step) => step.title === title)

function playedUpTo(last: number, at = NOW): TourState {
  let state = newTour(SCRIPT)
  for (let index = 0; index <= last; index += 1) {
    state = advance(state, { type: 'played', index, played: WELL, at })
  }
  return state
}

describe('the plan', () => {
  const plan = (state: TourState, index: number, now = NOW) =>
    planFor(SCRIPT, state, { index, now })

  it('plays the missing steps first', () => {
    expect(plan(newTour(SCRIPT), 3)).toEqual({ isAgain: false, indexes: [0, 1, 2, 3] })
    expect(plan(playedUpTo(1), 3)).toEqual({ isAgain: false, indexes: [2, 3] })
    expect(plan(playedUpTo(5), 3)).toEqual({ isAgain: false, indexes: [3] })
  })

  it('begins again with the first step', () => {
    expect(plan(playedUpTo(5), 0)).toEqual({ isAgain: true, indexes: [0] })
    const begun = advance(playedUpTo(5), { type: 'begun' })
    expect(begun).toEqual(newTour(SCRIPT))
  })

  it('says why a step is not played again', () => {
    expect(plan(playedUpTo(5), indexOf('accepted write'))).toEqual({
      refusal: expect.stringContaining('first step begins again'),
    })
    expect(plan(playedUpTo(5), 99)).toEqual({ refusal: 'There is no such step' })
  })

  it('lets a rotation rest', () => {
    const rotation = indexOf('rotation in mid-flight')
    const state = playedUpTo(rotation)
    expect(plan(state, rotation, NOW + 2000)).toEqual({
      refusal: expect.stringMatching(/twice in 10 seconds.*try again in 3 s$/),
    })
    expect(plan(state, rotation, NOW + 5000)).toEqual({ isAgain: false, indexes: [rotation] })
  })

  it('plays again what has left a token that has grown old', () => {
    const replayed = indexOf('replayed token')
    const state = playedUpTo(replayed)
    expect(plan(state, replayed, NOW + 100_000)).toMatchObject({ indexes: [replayed] })
    expect(plan(state, replayed, NOW + 300_000)).toMatchObject({
      indexes: [indexOf('key reused with another body'), replayed],
    })
  })
})

it('tells the story of the terminal, each step with one sentence', () => {
  const stage = { ordersUrl: '', billingUrl: '', cutNextCommit: undefined } as unknown as Stage
  const told = storySteps(stage).map(({ title, request }) => [title, request])
  expect(SCRIPT.map(({ title, request }) => [title, request])).toEqual(told)
  for (const { about } of SCRIPT) expect(about).toMatch(/^[A-Z][^.]*\.$/)
})
