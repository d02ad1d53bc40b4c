import type { ReceiverName, ReceiverState } from '../../protocol.js'
import { ActionButton } from '../components/action-button.js'
import { plural } from '../components/words.js'
import { retriable, sendRetry, sendWrite } from './writes-sent.js'

/** A receiver: a process that can hold a write, be killed and be started again. */
export function Receiver({ receiver }: { readonly receiver: ReceiverState }) {
  const { name, phase, pid } = receiver
  return (
    <section class="writes-receiver" data-receiver={name} data-phase={phase} aria-label={name}>
      <h3>{name}</h3>
      <p>
        <strong class={`writes-phase writes-phase-${phase}`}>{phase}</strong>
        {pid !== undefined && phase !== 'killed' && (
          <>
            , process <code>{pid}</code>
          </>
        )}
      </p>
      <p data-held={receiver.heldWrites}>{holdingInWords(receiver)}</p>
      <div class="row">
        {phase === 'ready' ? (
          <OfOneThatServes receiver={receiver} />
        ) : (
          <Start receiver={receiver} />
        )}
      </div>
    </section>
  )
}

function holdingInWords({ heldWrites, isHoldingNextWrite, phase }: ReceiverState): string {
  if (phase !== 'ready') return 'It answers nobody.'
  const held = heldWrites > 0 ? `${plural(heldWrites, 'write')} held in the middle.` : ''
  if (isHoldingNextWrite) return `${held} The next write will be held.`.trim()
  return held || 'Writes go through.'
}

function OfOneThatServes({ receiver }: { readonly receiver: ReceiverState }) {
  const { name, isHoldingNextWrite, heldWrites } = receiver
  return (
    <>
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

function Start({ receiver: { name, phase } }: { readonly receiver: ReceiverState }) {
  if (phase === 'starting') return null
  return (
    <ActionButton
      name="start-receiver"
      input={{ receiver: name }}
      label={`Start ${name}`}
      kind="primary"
    >
      Start
    </ActionButton>
  )
}
