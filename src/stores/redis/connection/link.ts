import { AsyncResource } from 'node:async_hooks'
import type { Redis } from 'ioredis'
import type { Client } from './dedicated-client.js'
import { confirmHandshake, connectionFault } from './handshake.js'
import {
  type Attempt,
  atDeadline,
  isOver,
  isServersAnswer,
  NotConfirmed,
  within,
} from './redis-deadline.js'
import type { Script } from './script.js'
import { watchForSilence } from './stall-detector.js'

/** A script with its key and arguments. */
export interface Call {
  readonly script: Script
  readonly key: string
  readonly args: readonly (string | Buffer)[]
}

/**
 * One client of the store's own. It connects when it is first needed, and again when it is cut off,
 * in the async context in which the link was opened.
 */
export interface Link {
  readonly client: Client
  /** `undefined` when it is ready. @throws NotConfirmed when it is not in time. */
  untilReady(attempt: Attempt): Promise<void> | undefined
  /** Sends the call by its digest; the commands of one tick leave together. */
  evaluateKnown(call: Call): Promise<unknown>
  /** Sends the call with its source. */
  evaluateSource(call: Call): Promise<unknown>
  /** Counts a reply that comes on this connection as due until it has come. */
  watch<T>(reply: Promise<T>): Promise<T>
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

export const isUnknownScript = (error: unknown): boolean =>
  isServersAnswer(error) && error.message.startsWith('NOSCRIPT')

/** Before a connection is replaced whose login or database Redis refuses. */
const REFUSED_RETRY_MS = 500

/** A connection on which a reply is due and nothing has come back for `patienceMs` is replaced. */
export function openLink(client: Client, patienceMs: number): Link {
  const scripts = client as unknown as Scripts
  const waiters = new Set<() => void>()
  const corkForThisTick = client.isCluster ? () => {} : createCork(client as Redis)
  // In a cluster ioredis replaces the node that is silent (see dedicated-client.ts).
  const silence = client.isCluster
    ? undefined
    : watchForSilence(patienceMs, () => client.disconnect(true))
  let endHandshake = (): void => {}
  let lastFault: Error | undefined
  let isUsable = false
  let isClosed = false

  const connect = AsyncResource.bind(() => {
    client.connect().catch(() => {})
  })
  const watch = <T>(reply: Promise<T>): Promise<T> => silence?.watch(reply) ?? reply
  const send = (ask: () => Promise<unknown>): Promise<unknown> => {
    corkForThisTick()
    return watch(ask())
  }
  // A cluster's client connects to a node when a command first needs it. That connection outlives the
  // request, so the command must not be sent in the request's context.
  const sendInContext = client.isCluster ? AsyncResource.bind(send) : send

  function letWaitersProceed(): void {
    for (const proceed of waiters) proceed()
    waiters.clear()
  }

  // Faults reach whoever waits; without a listener they would be printed.
  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    lastFault = error.lastNodeError ?? error
  })
  client.on('connect', () => {
    void watch(new Promise<void>((resolve) => (endHandshake = resolve)))
  })
  client.on('close', () => {
    isUsable = false
    endHandshake()
  })
  client.on('ready', () => {
    endHandshake()
    const confirming = confirmHandshake(client)
    if (confirming === undefined) becomeUsable()
    else watch(confirming).then(becomeUsable, refuseConnection)
  })

  function becomeUsable(): void {
    if (client.status !== 'ready') return
    isUsable = true
    lastFault = undefined
    letWaitersProceed()
  }

  function refuseConnection(error: Error): void {
    if (!isServersAnswer(error)) return
    lastFault = error
    const { stream } = client as Redis
    const reconnect = (): void => {
      if (!isClosed && (client as Redis).stream === stream) client.disconnect(true)
    }
    setTimeout(reconnect, REFUSED_RETRY_MS).unref()
  }

  return {
    client,
    untilReady(attempt) {
      if (isClosed) throw new NotConfirmed('the store is closed', attempt.mayHaveRun, 'closed')
      if (client.status === 'ready' && isUsable) return undefined
      if (client.status === 'wait' || client.status === 'end') connect()
      // Nothing of those who have given up may stay behind: an outage can be long.
      return new Promise((resolve, reject) => {
        const callOff = atDeadline(attempt, () => {
          waiters.delete(proceed)
          reject(outOfReach(attempt, client, lastFault))
        })
        const proceed = (): void => {
          callOff()
          resolve()
        }
        waiters.add(proceed)
      })
    },
    evaluateKnown: ({ script, key, args }) =>
      sendInContext(() => scripts.evalshaBuffer(script.sha, 1, key, ...args)),
    evaluateSource: ({ script, key, args }) =>
      sendInContext(() => scripts.evalBuffer(script.source, 1, key, ...args)),
    watch,
    close() {
      isClosed = true
      silence?.close()
      client.disconnect()
      letWaitersProceed()
    },
  }
}

function outOfReach(
  { mayHaveRun }: Attempt,
  client: Client,
  fault: Error | undefined,
): NotConfirmed {
  const code = isServersAnswer(fault) ? 'server' : 'network'
  return new NotConfirmed(connectionFault(client, fault), mayHaveRun, code)
}

/** Commands of one tick leave in one packet: each would cost a system call of its own. */
function createCork(client: Redis): () => void {
  let corked: Redis['stream'] | undefined

  return () => {
    const { stream } = client
    if (stream === undefined || stream === corked) return
    corked = stream
    stream.cork()
    setImmediate(() => {
      if (corked === stream) corked = undefined
      stream.uncork()
    })
  }
}

/**
 * Sends the call once, when the link is ready; what Redis does not know any more, with its source.
 *
 * @throws NotConfirmed when there is no reply in time, or what ioredis rejects with.
 */
export async function evaluate(link: Link, call: Call, attempt: Attempt): Promise<unknown> {
  const becomingReady = link.untilReady(attempt)
  if (becomingReady !== undefined) await becomingReady
  attempt.isRepeated = attempt.mayHaveRun
  attempt.mayHaveRun = true
  try {
    return await within(link.evaluateKnown(call), attempt)
  } catch (error) {
    if (!isUnknownScript(error) || isOver(attempt)) throw error
    return await within(link.evaluateSource(call), attempt)
  }
}
