import type { ReceiverState } from '../../protocol.js'
import { Badge, type Tone } from '../components/badge.js'
import { Fact, Facts } from '../components/facts.js'
import { Ago } from '../components/time.js'
import { seconds } from '../components/words.js'
import { now } from '../state.js'
import { type KeySetState, lineInWords, type Segment, segmentsOf } from './keys-segments.js'

/** The states of a receiver's key set in the last five minutes, and what it has fetched. */
export function KeySetFigure({ receiver }: { readonly receiver: ReceiverState }) {
  const segments = segmentsOf(receiver.keySetLine, now.value)
  const words = lineInWords(segments)
  return (
    <figure class="card" data-receiver={receiver.name}>
      <figcaption>
        <h4>{receiver.name}</h4>
        <CurrentState receiver={receiver} last={segments.at(-1)} />
      </figcaption>
      <div class="keys-line" role="img" aria-label={`Key set of ${receiver.name}. ${words}`}>
        {segments.map((segment) => (
          <Stretch key={`${segment.from} ${segment.state}`} segment={segment} />
        ))}
      </div>
      <div class="keys-scale muted" aria-hidden="true">
        <span>5 min ago</span>
        <span>now</span>
      </div>
      <p class="small">{words}</p>
      <Fetches receiver={receiver} />
    </figure>
  )
}

interface CurrentStateProps {
  readonly receiver: ReceiverState
  readonly last: Segment | undefined
}

const TONES: Readonly<Record<KeySetState, Tone>> = {
  fresh: 'accepted',
  stale: 'refused',
  expired: 'failed',
  cold: 'neutral',
}

function CurrentState({ receiver: { phase, keySet }, last }: CurrentStateProps) {
  if (phase !== 'ready' || !keySet) return <Badge tone="neutral">{phase}</Badge>
  const { state } = keySet
  return (
    <Badge tone={TONES[state]}>
      {state}
      {last?.state === state && ` for ${seconds(now.value - last.from)}`}
    </Badge>
  )
}

function Stretch({ segment }: { readonly segment: Segment }) {
  const { state, milliseconds, startPercent, widthPercent } = segment
  return (
    <div
      class={`keys-stretch keys-stretch-${state}`}
      style={{ left: `${startPercent}%`, width: `${widthPercent}%` }}
      title={`${state} for ${seconds(milliseconds)}`}
    >
      <span>{state}</span>
    </div>
  )
}

function Fetches({ receiver }: { readonly receiver: ReceiverState }) {
  const { keySet, keySetFetches, budgetExhaustedAt } = receiver
  return (
    <Facts>
      <Fact name="Fetched">{keySetFetches.fetched}</Fact>
      <Fact name="Failed">
        {keySetFetches.failed}
        {keySet?.lastError && ` (${keySet.lastError})`}
      </Fact>
      <Fact name="Fetch budget">
        {budgetExhaustedAt === undefined ? (
          'never used up'
        ) : (
          <>
            used up <Ago at={budgetExhaustedAt} />
          </>
        )}
      </Fact>
      <Fact name="Usable keys">{keySet ? keySet.keys.length : 'not known'}</Fact>
    </Facts>
  )
}
