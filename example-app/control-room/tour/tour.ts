import * as z from 'zod'
import { readInput } from '../input/read-input.js'
import { ActionError } from '../ports.js'
import type { TourStep } from '../protocol.js'
import { launchPlayer, type Player } from './launch-player.js'
import { SCRIPT } from './script.js'
import { advance, newTour, type Played, planFor, type TourEvent, tourSteps } from './tour-state.js'

/** The story, step by step, on a stage of its own. */
export interface Tour {
  steps(): readonly TourStep[]
  /** Plays a step, and what is missing before it; the input comes unchecked. */
  play(input: unknown): Promise<TourStep>
  close(): Promise<void>
}

export interface TourOptions {
  /** A step has changed. */
  readonly onChange: () => void
  readonly clock?: () => number
  /** The program of the process, compiled. Default: its source. */
  readonly program?: string | undefined
}

const order = z.strictObject({ index: z.int() })

/**
 * Opens a tour. Its stage is a process of its own, some 100 MB and a second or two, which is started
 * with the first step and each time that the story begins again.
 */
export function openTour({ onChange, program, clock = Date.now }: TourOptions): Tour {
  let state = newTour(SCRIPT)
  let player: Player | undefined
  let isPlaying = false
  let isClosed = false

  function happen(event: TourEvent): void {
    state = advance(state, event)
    onChange()
  }

  async function playerNow(): Promise<Player> {
    if (player) return player
    const opened = await launchPlayer(program)
    if (isClosed) await opened.end()
    player = opened
    return opened
  }

  /** What the process had played is gone with it. */
  async function beginAgain(): Promise<void> {
    await player?.end()
    player = undefined
    happen({ type: 'begun' })
  }

  async function playOne(index: number): Promise<Played> {
    happen({ type: 'playing', index })
    try {
      const on = await playerNow()
      return await on.play(SCRIPT[index]?.title ?? '')
    } catch (error) {
      await player?.end()
      return { seen: 'nothing', faults: [`failed: ${(error as Error).message}`] }
    }
  }

  async function playTo(index: number): Promise<TourStep> {
    if (player?.isGone) await beginAgain()
    const plan = planFor(SCRIPT, state, { index, now: clock() })
    if ('refusal' in plan) throw new ActionError(plan.refusal)
    if (plan.isAgain) await beginAgain()
    for (const each of plan.indexes) {
      const played = await playOne(each)
      happen({ type: 'played', index: each, played, at: clock() })
      if (player === undefined || player.isGone) break
    }
    return tourSteps(SCRIPT, state)[index] as TourStep
  }

  return {
    steps: () => tourSteps(SCRIPT, state),
    async play(input) {
      const { index } = readInput(order, input)
      if (isPlaying) throw new ActionError('A step of the tour is being played')
      isPlaying = true
      try {
        return await playTo(index)
      } finally {
        isPlaying = false
      }
    },
    async close() {
      isClosed = true
      await player?.end()
    },
  }
}
