import type { ReceiverName, ReceiverState } from '../../protocol.js'
import { ActionButton } from '../components/action-button.js'
import { Badge, type Tone } from '../components/badge.js'
import { StartOffer } from '../components/start-offer.js'
import { plural } from '../components/words.js'
import { retriable, sendRetry, sendWrite } from './writes-sent.js'

const TONES: Readonly<Record<ReceiverState['phase'], Tone>> = {
  ready: 'accepted',
  starting: 'neutral',
  killed: 'failed',
}

/** A receiver: a process that can hold a write, be killed and be started again. */
export function Receiver({ receiver }: { readonly receiver: ReceiverState }) {
  const { name, phase, pid } = receiver
  return (
    <section class="card" data-receiver={name} data-phase={phase} aria-label={name}>
      <h3>{name}</h3>
      <p>
        <Badge tone={TONES[phase]}>{phase}</Badge>
        {pid !== undefined && phase !== 'killed' && (
          <>
            , process <code>{pid}</code>
          </>
        )}
      </p>
      {phase === 'ready' ? <Serving receiver={receiver} /> : <StartOffer receiver={name} />}
    </section>
  )
}

function holdingInWords({ heldWrites, isHoldingNextWrite }: ReceiverState): string {
  const held = heldWrites > 0 ? `${plural(heldWrites, 'write')} held in the middle.` : ''
  if (isHoldingNextWrite) return `${held} The next write will be held.`.trim()
  return held || 'Writes go through.'
}

function Serving({ receiver }: { readonly receiver: ReceiverState }) {
  const { name, isHoldingNextWrite, heldWrites } = receiver
  return (
    <>
      <p data-held={heldWrites}>{holdingInWords(receiver)}</p>
      <div class="row">
        <ActionButton
          name="hold-next-write"
          input={{ receiver: name, isHolding: !isHoldingNextWrite }}
          label={`${isHoldingNextWrite ? 'Do not hold' : 'Hold'} the next write of ${name}`}
        >
          {isHoldingNextWrite ? 'Do not hold the next write' : 'Hold the next write'}
        </ActionButton>
        <button
          type="button"
          class="button button-primary"
          aria-label={`Send a write to ${name}`}
          onClick={() => void sendWrite(name)}
        >
          Send a write
        </button>
        {heldWrites > 0 && (
          <ActionButton name="let-go" input={{ receiver: name }} label={`Let go at ${name}`}>
            Let go
          </ActionButton>
        )}
        <ActionButton
          name="kill-receiver"
          input={{ receiver: name }}
          label={`Kill (SIGKILL) ${name}`}
          kind="danger"
        >
          Kill (SIGKILL)
        </ActionButton>
        <Retry receiver={name} />
      </div>
    </>
  )
}

/** To whichever receiver the write was sent. */
function Retry({ receiver }: { readonly receiver: ReceiverName }) {
  const last = retriable.value
  if (!last) return null
  return (
    <button
      type="button"
      class="button"
      aria-label={`Send the retry to ${receiver}`}
      onClick={() => void sendRetry(last.order, receiver)}
    >
      Send the retry
    </button>
  )
}
