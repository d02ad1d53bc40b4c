import { Badge, type Tone } from '../components/badge.js'
import { calls, type LoggedCall, seenInWords, show, shownCall } from '../compose/call-log.js'

/** The last calls of this page, to go back to. */
export function CallHistory() {
  return (
    <nav class="history" aria-labelledby="history">
      <h3 id="history">The last calls</h3>
      <ol>
        {calls.value.map((call) => (
          <li key={call.number}>
            <button
              type="button"
              class="history-call"
              aria-current={shownCall.value === call ? 'true' : undefined}
              onClick={() => show(call.number)}
            >
              <span class="history-number">{call.number}</span>
              <span class="history-order">{orderOf(call)}</span>
              <End call={call} />
            </button>
          </li>
        ))}
      </ol>
    </nav>
  )
}

const TIMES = { one: '', hundred: '100 × ', 'twenty-at-once': '20 × ' }

function orderOf({ order, howMany }: LoggedCall): string {
  const to = howMany === 'twenty-at-once' ? 'both' : order.receiver
  const token = order.hostileToken === undefined ? '' : `, ${order.hostileToken}`
  return `${TIMES[howMany]}${order.method} as ${order.caller} to ${to}${token}`
}

function End({ call: { end } }: { readonly call: LoggedCall }) {
  const [tone, text] = endOf(end)
  return <Badge tone={tone}>{text}</Badge>
}

function endOf(end: LoggedCall['end']): [Tone, string] {
  if (end.kind === 'waiting') return ['neutral', 'waiting']
  if ('why' in end)
    return end.kind === 'unknown' ? ['failed', 'no result'] : ['neutral', 'not sent']
  if (end.kind === 'counted') return ['neutral', `${end.result.calls} answers`]
  const { answer, operator } = end.result
  if (!('status' in answer)) return [operator.outcome, 'no answer']
  return [operator.outcome, `${answer.status} ${seenInWords(operator)}`]
}
