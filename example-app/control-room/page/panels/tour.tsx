import type { TourStep } from '../../protocol.js'
import { act } from '../api.js'
import { Failure } from '../components/action-button.js'
import { useAsking } from '../components/asking.js'
import { Badge, type Tone } from '../components/badge.js'
import { Bytes } from '../components/bytes.js'
import { Empty } from '../components/empty.js'
import { Fact, Facts } from '../components/facts.js'
import { Panel } from '../components/panel.js'
import { reveal } from '../components/reveal.js'
import { room } from '../state.js'
import './tour.css'

export function TourPanel() {
  const steps = room.value?.tour ?? []
  return (
    <Panel
      id="tour"
      title="Tour"
      about="The story of this package, step by step: what is sent, what should come of it, and what came."
    >
      <TourButtons steps={steps} />
      {steps.length === 0 ? (
        <Empty>The steps come with the first word from the room.</Empty>
      ) : (
        <ol class="cards tour" aria-label="Steps of the tour">
          {steps.map((step) => (
            <Step key={step.index} step={step} />
          ))}
        </ol>
      )}
    </Panel>
  )
}

function TourButtons({ steps }: { readonly steps: readonly TourStep[] }) {
  const { isUnderWay, failure, ask } = useAsking()
  const isDisabled = isUnderWay.value || steps.length === 0
  const next = nextOf(steps)
  const rest = steps.map(({ index }) => index).filter((index) => index >= next)
  const played = steps.filter(
    ({ state }) => state === 'as-expected' || state === 'otherwise',
  ).length
  const isOver = played === steps.length && played > 0
  return (
    <div class="row tour-buttons">
      <button
        type="button"
        class="button button-primary"
        aria-disabled={isDisabled}
        onClick={() => {
          void ask(() => act('tour-step', { index: next }))
          reveal(idOf(next))
        }}
      >
        {isOver ? 'Begin again' : 'Next step'}
      </button>
      <button
        type="button"
        class="button"
        aria-disabled={isDisabled}
        onClick={() => void ask(() => playAll(rest))}
      >
        Play all
      </button>
      <span role="status">
        {played} of {steps.length} played
      </span>
      <Failure text={failure.value} />
    </div>
  )
}

const idOf = (index: number): string => `tour-step-${index}`

/** Plays steps one after another, until one cannot be played. */
async function playAll(indexes: readonly number[]): Promise<void> {
  for (const index of indexes) await act('tour-step', { index })
}

/** The first that was not played yet; the beginning, once all were. */
function nextOf(steps: readonly TourStep[]): number {
  return steps.find(({ state }) => state === 'not-played')?.index ?? 0
}

const STATES: Readonly<Record<TourStep['state'], readonly [Tone, string]>> = {
  'not-played': ['neutral', 'not played'],
  playing: ['neutral', 'playing…'],
  'as-expected': ['accepted', '✓ as expected'],
  otherwise: ['failed', '✕ otherwise'],
}

function Step({ step }: { readonly step: TourStep }) {
  const [tone, text] = STATES[step.state]
  return (
    <li class={`card tour-step tour-${step.state}`} id={idOf(step.index)}>
      <div class="tour-head">
        <h3>{step.title}</h3>
        <Badge tone={tone}>{text}</Badge>
      </div>
      <p>{step.about}</p>
      <p class="mono">{step.request}</p>
      {step.status !== undefined && (
        <Facts>
          <Fact name="The caller got">{step.status}</Fact>
          <Fact name="The operator saw">{step.seen}</Fact>
        </Facts>
      )}
      {step.answer && (
        <details>
          <summary>The answer</summary>
          <Bytes label={`Answer to ${step.title}`} text={step.answer} />
        </details>
      )}
      {step.faults.length > 0 && (
        <ul class="failure">
          {step.faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
    </li>
  )
}
