import type { RoomState } from '../../protocol.js'
import { Empty } from '../components/empty.js'
import { Panel } from '../components/panel.js'
import { plural } from '../components/words.js'
import type { LoggedCall } from '../compose/call-log.js'
import { room } from '../state.js'
import './writes.css'
import { Receiver } from './writes-receiver.js'
import { Record } from './writes-record.js'
import { endInWords, isRetry, sentWrites } from './writes-sent.js'

export function WritesPanel() {
  return (
    <Panel
      id="writes"
      title="Writes"
      about="A write runs once, however often it is retried: its record in the store says how far it has come, and who may go on."
    >
      <p class="writes-hint">
        Hold the next write of a receiver and send one: its order is on the books, but its caller
        has no answer yet. Kill the receiver and send the retry to the other: it is told to wait
        and, once the lease has ended, that nobody knows the outcome. Look into the books, settle
        the record, and the retry gets its answer.
      </p>
      {room.value && <Writes room={room.value} />}
    </Panel>
  )
}

function Writes({ room: { receivers, writes, orders, store } }: { readonly room: RoomState }) {
  return (
    <>
      <div class="writes-receivers">
        {receivers.map((receiver) => (
          <Receiver key={receiver.name} receiver={receiver} />
        ))}
      </div>
      <h3>What you have sent</h3>
      <SentWrites sent={sentWrites.value} />
      <h3>Records in the store</h3>
      <p>
        Store: {store.name}, <strong>{store.state}</strong>. On the books:{' '}
        <strong data-orders={orders}>{plural(orders, 'order')}</strong>.
      </p>
      {writes.length === 0 ? (
        <Empty>No record yet: send a write.</Empty>
      ) : (
        <ul class="writes-records">
          {writes.map((write) => (
            <Record key={write.record} write={write} />
          ))}
        </ul>
      )}
    </>
  )
}

function SentWrites({ sent }: { readonly sent: readonly LoggedCall[] }) {
  if (sent.length === 0) return <Empty>Nothing yet.</Empty>
  return (
    <ol class="writes-sent" aria-live="polite">
      {sent.map((call) => (
        <li key={call.number} data-sent={isRetry(call) ? 'retry' : 'write'}>
          {isRetry(call) ? 'A retry' : 'A write'} to {call.order.receiver}:{' '}
          <strong>{endInWords(call.end)}</strong>
        </li>
      ))}
    </ol>
  )
}
