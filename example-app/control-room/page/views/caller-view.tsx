import type { CallAnswer, CallResult } from '../../protocol.js'
import { Bytes } from '../components/bytes.js'
import { StartOffer } from '../components/start-offer.js'
import { count, milliseconds } from '../components/words.js'
import { calls, type LoggedCall } from '../compose/call-log.js'
import { timeless, whySoLittle } from './why-so-little.js'

interface CallerViewProps {
  readonly call: LoggedCall
  readonly result: CallResult
}

/** What the caller got, to the byte, and why it gets no more. */
export function CallerView({ call: { number, order }, result }: CallerViewProps) {
  const { answer } = result
  const twin = twinOf(number, result)
  return (
    <section class="view view-caller stack" aria-labelledby="caller-view">
      <h3 id="caller-view">What the caller got</h3>
      <p class="headline">{headline(answer)}</p>
      {'failure' in answer && <StartOffer receiver={order.receiver} />}
      <Bytes label="The answer, to the byte" text={answer.text || '(not one byte)'} />
      <p class="why">{whySoLittle(result, order.method)}</p>
      {twin && (
        <p class="muted">
          Call {twin.number} got the same bytes (but for the date), and its reason was{' '}
          <code>{twin.reason}</code>.
        </p>
      )}
    </section>
  )
}

function headline(answer: CallAnswer): string {
  const took = milliseconds(answer.milliseconds)
  if ('failure' in answer) return `No answer: ${answer.failure}, after ${took}`
  return `Status ${answer.status}, ${count(answer.bytes)} bytes, after ${took}`
}

/** An earlier call with the same answer for another reason: the caller cannot tell them apart. */
function twinOf(number: number, { answer, operator }: CallResult) {
  if (!('status' in answer) || operator.outcome === 'accepted') return undefined
  for (const call of calls.value) {
    const twin = twinIn(call)
    if (!twin || call.number >= number || twin.reason === operator.reason) continue
    if (twin.text === timeless(answer)) return { number: call.number, reason: twin.reason }
  }
  return undefined
}

function twinIn({ end }: LoggedCall): { text: string; reason: string } | undefined {
  if (end.kind !== 'answered' || !end.result.operator.reason) return undefined
  return { text: timeless(end.result.answer), reason: end.result.operator.reason }
}
