import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SCRIPT } from '../../example-app/control-room/tour/script.js'
import { openTour, type Tour } from '../../example-app/control-room/tour/tour.js'
import {
  advance,
  newTour,
  type Played,
  planFor,
  type TourState,
  tourSteps,
} from '../../example-app/control-room/tour/tour-state.js'
import type { Stage } from '../../example-app/story/stage.js'
import { storySteps } from '../../example-app/story/steps.js'
import { compile } from '../support/process/compile.js'

/** Whole stories, which start servers. */
const LONG = { timeout: 180_000 }

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
    expect(plan(state, rotation, NOW + 5000)).toEqual({
      refusal: expect.stringMatching(/twice in 30 seconds.*try again in 10 s$/),
    })
    expect(plan(state, rotation, NOW + 15_000)).toEqual({ isAgain: false, indexes: [rotation] })
  })

  it('plays again what has left a token that has grown old', () => {
    const replayed = indexOf('replayed token')
    const state = playedUpTo(replayed)
    expect(plan(state, replayed, NOW + 100_000)).toMatchObject({ indexes: [replayed] })
    expect(plan(state, replayed, NOW + 300_000)).toMatchObject({
      indexes: [indexOf('key reused with another body'), replayed],
    })
  })

  it('needs only what may be played again', () => {
    for (const { needs } of SCRIPT) {
      if (needs) expect(SCRIPT.find(({ title }) => title === needs.title)?.notAgain).toBeUndefined()
    }
  })
})

it('tells each step with what became of it', () => {
  const faults = ['status: expected 200, was 401']
  let state = advance(playedUpTo(0), { type: 'playing', index: 1 })
  state = advance(state, { type: 'played', index: 2, played: { ...WELL, faults }, at: NOW })
  const [first, second, third, fourth] = tourSteps(SCRIPT, state)
  expect(first).toEqual({
    index: 0,
    title: 'accepted read',
    request: 'billing: GET /orders/o-1',
    about: SCRIPT[0]?.about,
    state: 'as-expected',
    ...WELL,
  })
  expect(second).toMatchObject({ state: 'playing', faults: [] })
  expect(third).toMatchObject({ state: 'otherwise', faults })
  expect(fourth).toMatchObject({ state: 'not-played', faults: [] })
})

it('tells the story of the terminal, each step with one sentence', () => {
  const stage = { ordersUrl: '', billingUrl: '', cutNextCommit: undefined } as unknown as Stage
  const told = storySteps(stage).map(({ title, request }) => [title, request])
  expect(SCRIPT.map(({ title, request }) => [title, request])).toEqual(told)
  for (const { about } of SCRIPT) expect(about).toMatch(/^[A-Z][^.]*\.$/)
})

describe('played', () => {
  let tour: Tour
  let changes = 0
  let now = NOW

  beforeAll(async () => {
    const source = new URL('../../example-app/control-room/tour/player/main.ts', import.meta.url)
    tour = openTour({
      program: await compile(source),
      clock: () => now,
      onChange() {
        changes += 1
      },
    })
  })
  afterAll(() => tour.close())

  const statesOf = () => tour.steps().map(({ title, state, faults }) => [title, state, ...faults])
  const asExpected = () => SCRIPT.map(({ title }) => [title, 'as-expected'])

  it('goes as expected, to the last step and again in another order', LONG, async () => {
    const last = await tour.play({ index: SCRIPT.length - 1 })
    expect(last).toMatchObject({ state: 'as-expected', status: 503 })
    expect(last.answer).toMatch(/^HTTP\/1\.1 503\n(.+\n)*retry-after: 5\n(.+\n)*\n\{/)
    expect(statesOf()).toEqual(asExpected())
    expect(changes).toBe(2 * SCRIPT.length)

    now += 20_000
    for (const [index, { notAgain }] of [...SCRIPT.entries()].toReversed()) {
      if (index > 0 && notAgain === undefined) await tour.play({ index })
    }
    expect(statesOf()).toEqual(asExpected())

    const again = await tour.play({ index: 0 })
    expect(again.state).toBe('as-expected')
    expect(statesOf().filter(([, state]) => state === 'not-played')).toHaveLength(SCRIPT.length - 1)
    await tour.play({ index: SCRIPT.length - 1 })
    expect(statesOf()).toEqual(asExpected())
  })

  it('plays one step at a time, and none that there is not', async () => {
    const playing = tour.play({ index: 2 })
    await expect(tour.play({ index: 2 })).rejects.toMatchObject({ name: 'ActionError' })
    await playing
    for (const input of [{ index: 99 }, { index: 1 }, { index: '1' }, {}, null]) {
      await expect(tour.play(input)).rejects.toMatchObject({ name: 'ActionError' })
    }
  })
})

it('begins again when its process has ended', async () => {
  const source = new URL('./tour-mute-player.ts', import.meta.url)
  const tour = openTour({ program: await compile(source), onChange: () => undefined })
  const first = await tour.play({ index: 0 })
  expect(first).toMatchObject({ state: 'otherwise', faults: [expect.stringContaining('ended')] })
  const second = await tour.play({ index: 1 })
  expect(second.state).toBe('not-played')
  await tour.close()
})
