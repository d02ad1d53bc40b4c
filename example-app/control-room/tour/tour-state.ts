import type { TourStep } from '../protocol.js'
import type { ScriptedStep } from './script.js'

/** What became of a step, as it can be sent from the process that plays it. */
export interface Played {
  readonly status?: number
  /** What the operator saw. */
  readonly seen: string
  readonly answer?: string
  readonly faults: readonly string[]
}

export interface StepState {
  readonly phase: 'not-played' | 'playing' | 'played'
  /** When it was played last. */
  readonly at?: number
  readonly played?: Played
}

/** In the order of the script. */
export type TourState = readonly StepState[]

export type TourEvent =
  /** The story begins again. */
  | { readonly type: 'begun' }
  | { readonly type: 'playing'; readonly index: number }
  | {
      readonly type: 'played'
      readonly index: number
      readonly played: Played
      readonly at: number
    }

const NOT_PLAYED: StepState = { phase: 'not-played' }

export const newTour = (script: readonly ScriptedStep[]): TourState => script.map(() => NOT_PLAYED)

export function advance(state: TourState, event: TourEvent): TourState {
  switch (event.type) {
    case 'begun':
      return state.map(() => NOT_PLAYED)
    case 'playing':
      return state.with(event.index, { phase: 'playing' })
    case 'played': {
      const { index, played, at } = event
      return state.with(index, { phase: 'played', played, at })
    }
  }
}

/** What has to be played, in order; or why a step is not played now. */
export type Plan =
  | { readonly isAgain: boolean; readonly indexes: readonly number[] }
  | { readonly refusal: string }

/** What playing a step comes to: the steps before it that are missing, or too long ago, and itself. */
export function planFor(
  script: readonly ScriptedStep[],
  state: TourState,
  asked: { readonly index: number; readonly now: number },
): Plan {
  const { index, now } = asked
  const step = script[index]
  if (step === undefined) return { refusal: 'There is no such step' }
  const at = state[index]?.at
  if (at !== undefined) {
    if (index === 0) return { isAgain: true, indexes: [0] }
    const refusal = refusalOf(step, now - at)
    if (refusal !== undefined) return { refusal }
  }
  const earlier = script.slice(0, index).map((_, before) => before)
  const due = earlier.filter((before) => isDue(script, state, { step, before, now }))
  return { isAgain: false, indexes: [...due, index] }
}

const MS_OF_SECOND = 1000

/** Why a step that was played so long ago is not played again. */
function refusalOf({ notAgain, rest }: ScriptedStep, agoMs: number): string | undefined {
  if (notAgain !== undefined) return notAgain
  if (rest === undefined || agoMs >= rest.forMs) return undefined
  const seconds = Math.ceil((rest.forMs - agoMs) / MS_OF_SECOND)
  return `${rest.because}: try again in ${seconds} s`
}

function isDue(
  script: readonly ScriptedStep[],
  state: TourState,
  { step, before, now }: { step: ScriptedStep; before: number; now: number },
): boolean {
  const at = state[before]?.at
  if (at === undefined) return true
  const { needs } = step
  return needs !== undefined && script[before]?.title === needs.title && now - at > needs.withinMs
}

/** The steps as the page gets them. */
export function tourSteps(script: readonly ScriptedStep[], state: TourState): readonly TourStep[] {
  return script.map(({ title, request, about }, index) => {
    const { phase, played } = state[index] ?? NOT_PLAYED
    const { faults = [], ...shown } = played ?? {}
    const result = faults.length === 0 ? 'as-expected' : 'otherwise'
    return {
      index,
      title,
      request,
      about,
      state: phase === 'played' ? result : phase,
      ...shown,
      faults,
    }
  })
}
