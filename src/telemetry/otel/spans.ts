import { type Attributes, trace } from '@opentelemetry/api'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import { listenTo, type StopListening } from '../../base/decision/listen.js'
import { ATTRIBUTE } from './names.js'
import { peerOf } from './peer.js'

/** Notes on the active span, which is the request's, what was decided last. */
export function noteOnSpans(): StopListening[] {
  return [
    listenTo<DecisionEvent>('decision', (event) =>
      note(() => ({
        [ATTRIBUTE.guard]: event.by,
        [ATTRIBUTE.outcome]: event.outcome,
        ...(event.credential !== undefined && { [ATTRIBUTE.credential]: event.credential }),
        ...(event.outcome !== 'accepted' && { [ATTRIBUTE.reason]: event.reason }),
        ...(event.keyId !== undefined && { [ATTRIBUTE.keyId]: event.keyId }),
        ...peerOf(event),
      })),
    ),
    listenTo<IdempotencyEvent>('idempotency', (event) =>
      note(() => ({
        [ATTRIBUTE.guard]: event.by,
        [ATTRIBUTE.outcome]: event.outcome,
        [ATTRIBUTE.reason]: event.reason,
        ...(event.record !== undefined && { [ATTRIBUTE.record]: event.record }),
        ...('fence' in event && { [ATTRIBUTE.fence]: event.fence }),
        ...peerOf(event),
      })),
    ),
  ]
}

/** A span that has ended, or is not sampled, is left alone. */
function note(attributes: () => Attributes): void {
  const span = trace.getActiveSpan()
  if (span?.isRecording()) span.setAttributes(attributes())
}
