import { type Connection, connection } from '../state.js'

const WORDS: Readonly<Record<Connection, string>> = {
  connecting: 'Connecting to the room…',
  live: 'Live',
  lost: 'Connection lost. What you see is old; the page keeps trying to come back.',
  crowded: 'The room has as many pages open as it takes. Close one; this one keeps trying.',
  'shut-out': 'The room was started again, at another address: open the one that it printed last.',
}

/** Whether what is seen is of now. */
export function ConnectionState() {
  return (
    <p class={`connection connection-${connection.value}`} role="status">
      {WORDS[connection.value]}
    </p>
  )
}
