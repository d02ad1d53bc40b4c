import type { Messages } from '../protocol.js'
import {
  type Connection,
  connection,
  tookCatalogue,
  tookEvents,
  tookSeconds,
  tookState,
} from './state.js'

/** The room says something every second: a line that is silent for so long is dead. */
const MAX_SILENCE_MS = 10_000
const RETRY_MS = 1000
const STREAM = 'events'

/** Connects to the room, and again whenever the line is lost, for as long as the page is open. */
export function connect(): void {
  const source = new EventSource(STREAM)
  let receivedAt = Date.now()
  const watch = setInterval(() => {
    if (Date.now() - receivedAt > MAX_SILENCE_MS) again('lost')
  }, RETRY_MS)

  function again(state: Absence): void {
    source.close()
    clearInterval(watch)
    connection.value = state
    setTimeout(connect, RETRY_MS)
  }

  /** Calls with each message of the type, and whether it is the first of this connection. */
  function listen<Type extends keyof Messages>(
    type: Type,
    take: (message: Messages[Type], isFirst: boolean) => void,
  ): void {
    let isFirst = true
    source.addEventListener(type, (event: MessageEvent<string>) => {
      receivedAt = Date.now()
      connection.value = 'live'
      take(JSON.parse(event.data) as Messages[Type], isFirst)
      isFirst = false
    })
  }

  listen('catalogue', tookCatalogue)
  listen('state', tookState)
  listen('seconds', tookSeconds)
  listen('events', tookEvents)
  source.addEventListener('error', () => {
    // A browser gives up for good after an answer that is no stream: this page does not.
    source.close()
    clearInterval(watch)
    whyNot().then(again, () => again('lost'))
  })
}

type Absence = Exclude<Connection, 'connecting' | 'live'>

/** Whether the room is away, full, or does not know this page's key, as after a restart. */
async function whyNot(): Promise<Absence> {
  const ask = new AbortController()
  const limit = setTimeout(() => ask.abort(), MAX_SILENCE_MS)
  try {
    const { status } = await fetch(STREAM, { signal: ask.signal })
    if (status === 503) return 'crowded'
    return status >= 400 && status < 500 ? 'shut-out' : 'lost'
  } finally {
    clearTimeout(limit)
    ask.abort()
  }
}
