import { type Attempt, atDeadline, faultText, isOver, NotConfirmed } from './attempt.js'
import type { Client } from './own-client.js'
import type { Script } from './script.js'

/** A script with its key and arguments. */
export interface Call {
  readonly script: Script
  readonly key: string
  readonly args: readonly (string | Buffer)[]
}

/** One client of the store's own. It connects when it is first needed, and again when it is cut off. */
export interface Link {
  readonly client: Client
  /** `undefined` when it is ready. @throws NotConfirmed when it is not in time. */
  untilReady(attempt: Attempt): Promise<void> | undefined
  /** Sends the call by its digest; the commands of one tick leave together. */
  evaluateKnown(call: Call): Promise<unknown>
  /** Sends the call with its source. */
  evaluateSource(call: Call): Promise<unknown>
  /** Keeps the process open until `work` is settled: somebody waits for it. */
  hold<T>(work: Promise<T>): Promise<T>
  close(): void
}

/** The parts of ioredis that its types leave out. */
type RunScript = (
  script: string,
  keys: 1,
  key: string,
  ...args: readonly (string | Buffer)[]
) => Promise<unknown>

interface Scripts {
  evalshaBuffer: RunScript
  evalBuffer: RunScript
}

interface Holder {
  ref?(): void
  unref?(): void
}

interface Wire extends Holder {
  readonly connecting?: boolean
  readonly destroyed?: boolean
  cork(): void
  uncork(): void
  destroy(): void
}

interface Handles {
  readonly stream?: Wire
  readonly reconnectTimeout?: Holder | null
}

export const isUnknownScript = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('NOSCRIPT')

export function openLink(client: Client): Link {
  const scripts = client as unknown as Scripts
  const handles = client as unknown as Handles
  const waiters = new Set<() => void>()
  const flushAtEndOfTick = createCork()
  let lastFault = ''
  let heldBy = 0
  let isClosed = false

  /** What ioredis opens holds the process only while somebody waits. */
  const holdOrLetGo = (): void => {
    const { stream, reconnectTimeout } = handles
    // A socket without a handle would only remember being told: here, thousands of times.
    const socket = stream?.connecting || stream?.destroyed ? undefined : stream
    for (const handle of [socket, reconnectTimeout]) {
      if (heldBy > 0) handle?.ref?.()
      else handle?.unref?.()
    }
  }
  const changeHold = (by: 1 | -1): void => {
    heldBy += by
    if (heldBy === 0 || (heldBy === 1 && by === 1)) holdOrLetGo()
  }

  const letGo = (): void => changeHold(-1)

  client.on('connect', holdOrLetGo)
  client.on('reconnecting', holdOrLetGo)
  // Faults reach whoever waits; without a listener they would be printed.
  client.on('error', (error: Error) => {
    lastFault = `: ${faultText(error)}`
  })
  client.on('ready', () => {
    lastFault = ''
    for (const proceed of waiters) proceed()
    waiters.clear()
  })

  return {
    client,
    untilReady(attempt) {
      if (isClosed) throw new NotConfirmed('the store is closed', attempt.mayHaveRun)
      if (client.status === 'ready') return undefined
      if (client.status === 'wait' || client.status === 'end') client.connect().catch(() => {})
      // Nothing of those who have given up may stay behind: an outage can be long.
      return new Promise((resolve, reject) => {
        const callOff = atDeadline(attempt, () => {
          waiters.delete(proceed)
          const fault = `Redis is out of reach${lastFault}`
          reject(new NotConfirmed(fault, attempt.mayHaveRun))
        })
        const proceed = (): void => {
          callOff()
          resolve()
        }
        waiters.add(proceed)
      })
    },
    evaluateKnown({ script, key, args }) {
      flushAtEndOfTick(handles.stream)
      return scripts.evalshaBuffer(script.sha, 1, key, ...args)
    },
    evaluateSource({ script, key, args }) {
      flushAtEndOfTick(handles.stream)
      return scripts.evalBuffer(script.source, 1, key, ...args)
    },
    hold(work) {
      changeHold(1)
      work.then(letGo, letGo)
      return work
    },
    close() {
      isClosed = true
      client.disconnect()
      // Not politely: a server that hangs would keep the socket.
      handles.stream?.destroy()
    },
  }
}

const MOST_AT_ONCE = 32

/**
 * Commands of one tick leave in one packet: each would cost a system call of its own. Many leave in
 * several, so that Redis works on the first while the rest are still being written.
 */
function createCork(): (stream: Handles['stream']) => void {
  let corked: Wire | undefined
  let count = 0

  function cork(stream: Wire): void {
    corked = stream
    count = 0
    stream.cork()
    setImmediate(() => {
      if (corked === stream) corked = undefined
      stream.uncork()
    })
  }

  return (stream) => {
    if (stream === undefined) return
    if (corked !== stream) cork(stream)
    count += 1
    if (count <= MOST_AT_ONCE) return
    count = 1
    stream.uncork()
    stream.cork()
  }
}

/** Sends the call once; what Redis does not know any more, with its source. */
export const evaluate = (link: Link, call: Call, attempt: Attempt): Promise<unknown> =>
  link.evaluateKnown(call).catch((error: unknown) => {
    if (!isUnknownScript(error) || isOver(attempt)) throw error
    return link.evaluateSource(call)
  })
