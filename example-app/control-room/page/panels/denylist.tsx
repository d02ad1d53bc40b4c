import type { DeniedState, ReceiverState, RoomState } from '../../protocol.js'
import { ActionButton } from '../components/action-button.js'
import { Empty } from '../components/empty.js'
import { Panel } from '../components/panel.js'
import { Ago, Left } from '../components/time.js'
import { milliseconds, plural } from '../components/words.js'
import { calls } from '../compose/call-log.js'
import { events, now, room } from '../state.js'
import './denylist.css'
import { DenyForm } from './denylist-form.js'
import { knownFrom } from './denylist-known.js'

export function DenylistPanel() {
  return (
    <Panel
      id="denylist"
      title="Denylist"
      about="Every receiver refuses what is denied here, as soon as it has read the list. The caller does not learn why."
    >
      {room.value && <Content room={room.value} />}
    </Panel>
  )
}

function Content({ room }: { readonly room: RoomState }) {
  return (
    <>
      <DenyFormOfRoom room={room} />
      <ul>
        {room.receivers.map((receiver) => (
          <li key={receiver.name}>{listInWords(receiver)}</li>
        ))}
      </ul>
      <h3 id="denied-now">Denied now</h3>
      <DeniedNow room={room} />
    </>
  )
}

function DeniedNow({ room }: { readonly room: RoomState }) {
  const current = room.denied.filter(({ until = Infinity }) => until > now.value)
  if (current.length === 0) return <Empty>Nothing is denied.</Empty>
  return (
    <ul class="cards">
      {current.map((denied) => (
        <Denied key={`${denied.kind} ${denied.value}`} denied={denied} room={room} />
      ))}
    </ul>
  )
}

/** Apart, because it is drawn again with each event. */
function DenyFormOfRoom({ room }: { readonly room: RoomState }) {
  return <DenyForm known={knownFrom({ room, events: events.value, calls: calls.value })} />
}

function listInWords({ name, denylist, phase }: ReceiverState): string {
  if (phase !== 'ready' || !denylist) return `${name}: ${phase}, it answers no calls.`
  return `${name}: its list is ${denylist.state} and has ${plural(denylist.entries, 'entry', 'entries')}.`
}

interface DeniedProps {
  readonly denied: DeniedState
  readonly room: RoomState
}

function Denied({ denied, room }: DeniedProps) {
  const { kind, value, reason, at, until } = denied
  return (
    <li class="card denylist-entry" data-kind={kind} data-value={value}>
      <p>
        The {kind} <code>{value}</code>: {reason}
      </p>
      <p class="muted">
        Denied <Ago at={at} />
        {until === undefined ? (
          ', without end'
        ) : (
          <>
            , for another <Left until={until} />
          </>
        )}
        .
      </p>
      <ul class="row">
        {room.receivers.map((receiver) => (
          <Applied
            key={receiver.name}
            receiver={receiver}
            after={denied.appliedAfter[receiver.name]}
          />
        ))}
      </ul>
      <ActionButton
        name="allow"
        input={{ kind, value }}
        label={`Allow again: the ${kind} ${value}`}
      >
        Allow again
      </ActionButton>
    </li>
  )
}

interface AppliedProps {
  readonly receiver: ReceiverState
  readonly after: number | undefined
}

function Applied({ receiver: { name, phase }, after }: AppliedProps) {
  const isApplied = after !== undefined
  return (
    <li
      class={`badge ${isApplied ? 'badge-accepted' : 'badge-undecided'}`}
      data-applied={isApplied ? name : undefined}
    >
      {isApplied ? `${name}: applied after ${milliseconds(after)}` : `${name}: ${waiting(phase)}`}
    </li>
  )
}

const waiting = (phase: ReceiverState['phase']): string =>
  phase === 'ready' ? 'not yet' : `not yet, it is ${phase}`
