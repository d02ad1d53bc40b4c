import { Empty } from '../components/empty.js'
import { Panel } from '../components/panel.js'
import { calls, type LoggedCall, shownCall } from '../compose/call-log.js'
import { CallHistory } from '../views/call-history.js'
import { CallerView } from '../views/caller-view.js'
import { ManyCallsView } from '../views/many-calls-view.js'
import { OperatorView } from '../views/operator-view.js'
import { RequestView, TokenView } from '../views/request-view.js'
import './views.css'

export function ViewsPanel() {
  const call = shownCall.value
  return (
    <Panel
      id="views"
      title="Two views of one answer"
      about="On one side all that the caller is told, on the other what the operator of the receiver sees."
    >
      {call ? <ShownCall call={call} /> : <Nothing />}
      {calls.value.length > 0 && <CallHistory />}
    </Panel>
  )
}

function Nothing() {
  return (
    <>
      <Empty>
        No call yet. <a href="#compose">Press “A tampered token”</a>, then “A permission missing”,
        and compare.
      </Empty>
      <h3>Where to go from here</h3>
      <ul class="stack">
        <li>
          <a href="#tour">Tour</a>: the whole story, step by step, with one sentence each.
        </li>
        <li>
          <a href="#writes">Writes</a>: kill a receiver in the middle of a write, and see that a
          retry never writes twice.
        </li>
        <li>
          <a href="#keys">Keys</a>: rotate the signing key, or take the core down, and see who goes
          on.
        </li>
        <li>
          <a href="#denylist">Denylist</a>: shut out a caller, a key or a token.
        </li>
      </ul>
    </>
  )
}

function ShownCall({ call }: { readonly call: LoggedCall }) {
  const { number, end, order } = call
  switch (end.kind) {
    case 'waiting':
      return (
        <Empty>
          Call {number} is under way: {order.receiver} has not answered yet.
          {order.method === 'POST' &&
            ' A write that is held waits until it is let go, or its receiver is killed.'}
        </Empty>
      )
    case 'not-sent':
      return (
        <Empty>
          Call {number} was not sent: {end.why}
        </Empty>
      )
    case 'unknown':
      return (
        <Empty>
          The result of call {number} is unknown: {end.why}
        </Empty>
      )
    case 'counted':
      return <ManyCallsView result={end.result} />
    case 'answered': {
      const { result } = end
      return (
        <div class="views">
          <CallerView call={call} result={result} />
          <OperatorView seen={result.operator} />
          <RequestView request={result.request} />
          <TokenView token={result.request.token} />
        </div>
      )
    }
  }
}
