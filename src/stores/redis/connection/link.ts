import { AsyncResource } from 'node:async_hooks'
import type { Redis } from 'ioredis'
import type { Client } from './dedicated-client.js'
import { confirmHandshake, connectionErrorText } from './handshake.js'
import {
  atDeadline,
  type CallState,
  isReplyError,
  NotConfirmed,
  type RedisCall,
  type ScriptSender,
} from './redis-call.js'
import { detectStalls } from './stall-detector.js'

/**
 * A dedicated client. It connects on first use and reconnects after a disconnect, in the async context
 * in which the link was opened.
 */
export interface Link extends ScriptSender<RedisCall> {
  readonly client: Client
  /** Counts a reply on this connection as pending until it settles, and returns it. */
  watch<T>(reply: Promise<T>): Promise<T>
  close(): void
}

/** Functions of ioredis that its types omit. */
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

/** The delay before reconnecting if Redis refuses the login or the database. */
const REFUSED_RETRY_MS = 500

/** Replaces the connection if a reply is pending and nothing has arrived for `stallTimeoutMs`. */
export function openLink(client: Client, stallTimeoutMs: number): Link {
  const scripts = client as unknown as Scripts
  const waiters = new Set<() => void>()
  const corkForThisTick = client.isCluster ? () => {} : createCork(client as Redis)
  // In a cluster, ioredis replaces the connection of a silent node (see dedicated-client.ts).
  const stallDetector = client.isCluster
    ? undefined
    : detectStalls(stallTimeoutMs, () => client.disconnect(true))
  let endHandshake = (): void => {}
  let lastError: Error | undefined
  let isUsable = false
  let isClosed = false

  const connect = AsyncResource.bind(() => {
    client.connect().catch(() => {})
  })
  const watch = <T>(reply: Promise<T>): Promise<T> => stallDetector?.watch(reply) ?? reply
  const send = (sendCommand: () => Promise<unknown>): Promise<unknown> => {
    corkForThisTick()
    return watch(sendCommand())
  }
  // A cluster client connects to a node when a command first needs it. That connection outlives the
  // request, so the command must not be sent in the async context of the request.
  const sendInContext = client.isCluster ? AsyncResource.bind(send) : send

  function letWaitersProceed(): void {
    for (const proceed of waiters) proceed()
    waiters.clear()
  }

  // Waiting calls get the errors; without a listener, ioredis would print them.
  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    lastError = error.lastNodeError ?? error
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
    else watch(confirming).then(becomeUsable, reconnectLater)
  })

  function becomeUsable(): void {
    if (client.status !== 'ready') return
    isUsable = true
    lastError = undefined
    letWaitersProceed()
  }

  function reconnectLater(error: Error): void {
    if (!isReplyError(error)) return
    lastError = error
    const { stream } = client as Redis
    const reconnect = (): void => {
      if (!isClosed && (client as Redis).stream === stream) client.disconnect(true)
    }
    setTimeout(reconnect, REFUSED_RETRY_MS).unref()
  }

  return {
    client,
    untilReady(state) {
      if (isClosed) throw new NotConfirmed('the store is closed', state.mayHaveRun, 'closed')
      if (client.status === 'ready' && isUsable) return undefined
      if (client.status === 'wait' || client.status === 'end') connect()
      // Calls that have timed out must leave nothing in memory, because an outage can be long.
      return new Promise((resolve, reject) => {
        const cancel = atDeadline(state, () => {
          waiters.delete(proceed)
          reject(unreachableError(state, client, lastError))
        })
        const proceed = (): void => {
          cancel()
          resolve()
        }
        waiters.add(proceed)
      })
    },
    sendDigest: ({ script, key, args }) =>
      sendInContext(() => scripts.evalshaBuffer(script.sha, 1, key, ...args)),
    sendSource: ({ script, key, args }) =>
      sendInContext(() => scripts.evalBuffer(script.source, 1, key, ...args)),
    watch,
    close() {
      isClosed = true
      stallDetector?.close()
      client.disconnect()
      letWaitersProceed()
    },
  }
}

function unreachableError(
  { mayHaveRun }: CallState,
  client: Client,
  error: Error | undefined,
): NotConfirmed {
  const code = isReplyError(error) ? 'server' : 'network'
  return new NotConfirmed(connectionErrorText(client, error), mayHaveRun, code)
}

/** Corks the stream for one tick, so that its commands need one system call instead of one each. */
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
