import type { WriteState } from '../../protocol.js'
import { Fact, Facts } from '../components/facts.js'
import { Ago } from '../components/time.js'
import { seconds } from '../components/words.js'
import { now } from '../state.js'
import { endingsOf, leaseLeft, STATES, stateOf } from './writes-rules.js'
import { SettleForm } from './writes-settle.js'

/** Enough of a digest to tell records apart. */
const DIGEST_SHOWN = 12

/** A record in the store, and the form that settles it where that may be. */
export function Record({ write }: { readonly write: WriteState }) {
  const { record, caller, receiver, seenAt, view } = write
  const left = leaseLeft(write, now.value)
  const state = stateOf(write)
  const endings = view ? endingsOf(view) : []
  return (
    <li class="card" data-record={record} data-state={state}>
      <p class="writes-record-head">
        <code title={record}>{record.slice(0, DIGEST_SHOWN)}…</code>{' '}
        <strong>{state.replace('_', ' ')}</strong>
        {left !== undefined && (
          <>
            , its lease ends in <span class="writes-lease">{seconds(left)}</span>
          </>
        )}
      </p>
      <p class="muted">{STATES[state]}</p>
      <Facts>
        <Fact name="Caller">{caller}</Fact>
        <Fact name="Last tried at">{receiver}</Fact>
        <Fact name="Seen">
          <Ago at={seenAt} />
        </Fact>
        <Fact name="Fence">
          <code>{view?.fence ?? '–'}</code>
        </Fact>
      </Facts>
      {view && endings.length > 0 && (
        <SettleForm record={record} fence={view.fence} endings={endings} />
      )}
    </li>
  )
}
