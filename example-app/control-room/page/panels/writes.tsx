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
      <ol class="writes-hint">
        <li>
          At orders-1, hold the next write and send one: the order is written, but its caller has no
          answer yet.
        </li>
        <li>
          Kill orders-1 and send the retry to orders-2: it is told to wait, and after ten seconds,
          when the lease has ended, that nobody knows the outcome.
        </li>
        <li>
          Settle the record below: the order is there, so it has happened. Send the retry again: it
          gets that answer, and there is still one order.
        </li>
      </ol>
      {room.value && <Writes room={room.value} />}
    </Panel>
  )
}

function Writes({ room: { receivers, writes, orders, store } }: { readonly room: RoomState }) {
  return (
    <>
      <div class="cards">
        {receivers.map((receiver) => (
          <Receiver key={receiver.name} receiver={receiver} />
        ))}
      </div>
      <h3 id="writes-sent">What you have sent</h3>
      <SentWrites sent={sentWrites.value} />
      <h3>Records in the store</h3>
      <p>
        Store: {store.name}, <strong>{store.state}</strong>. Written so far:{' '}
        <strong data-orders={orders}>{plural(orders, 'order')}</strong>.
      </p>
      <p class="muted">
        A lease is the time that a run has before others may judge it; the fence is the number of
        the run, and only the latest may end the record.
      </p>
      {writes.length === 0 ? (
        <Empty>No record yet: send a write.</Empty>
      ) : (
        <ul class="cards">
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
