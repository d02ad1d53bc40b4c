import type { SettleOrder, WriteState } from '../../protocol.js'

type View = NonNullable<WriteState['view']>

/** `unread`: the store has not been read yet. */
type State = View['state'] | 'gone' | 'unread'

export function stateOf({ view, readAt }: WriteState): State {
  if (view) return view.state
  return readAt === 0 ? 'unread' : 'gone'
}

/** What a record says, in words. */
export const STATES: Readonly<Record<State, string>> = {
  running: 'As far as the store knows, somebody is at work: retries are told to wait.',
  abandoned: 'Its run is gone, and nobody knows whether it has happened.',
  finished: 'It has its answer, and retries get it.',
  not_stored: 'It has happened, but its answer was not kept.',
  freed: 'Nothing has happened, and the next retry runs.',
  unreadable: 'It has happened, but its answer cannot be opened.',
  gone: 'The store has no such record any more.',
  unread: 'Its record has not been read yet.',
}

/** How a record may be ended now, as `service-auth settle` judges it; empty where it may not. */
export function endingsOf(view: View): readonly SettleOrder['as'][] {
  switch (view.state) {
    case 'abandoned':
      return ['freed', 'done']
    case 'not_stored':
      return view.leaseLeftMs === undefined ? ['done'] : []
    case 'unreadable':
      if (view.recordVersion !== undefined) return []
      return view.fence === 0 ? ['freed'] : ['done']
    default:
      return []
  }
}

/** What is left of the lease now, if there is one: it was read from the store at `readAt`. */
export function leaseLeft({ view, readAt }: WriteState, now: number): number | undefined {
  if (view?.leaseLeftMs === undefined) return undefined
  return Math.max(0, view.leaseLeftMs - (now - readAt))
}
