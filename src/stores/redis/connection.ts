import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import type { Script } from './script.js'

/** Runs scripts on a connection of the store's own, each within `timeoutMs`. */
export interface Connection {
  /**
   * Repeats a script whose reply was lost, which must have no further effect.
   *
   * @throws Error when there was no reply in time; `mayHaveRun` tells whether it was sent.
   */
  run(script: Script, key: string, args: readonly (string | Buffer)[]): Promise<unknown>
  /** The nodes that take writes, once the connection is ready. */
  masters(): Promise<readonly Redis[]>
  close(): void
}

/** No reply: the store is out of reach. */
export class NoReply extends Error {
  override readonly name = 'NoReply'
  /** Whether the command was sent, and may yet take effect. */
  readonly mayHaveRun: boolean

  constructor(message: string, mayHaveRun: boolean, options?: ErrorOptions) {
    super(message, options)
    this.mayHaveRun = mayHaveRun
  }
}

const MAX_RECONNECT_DELAY_MS = 1000
/** A socket on which nothing comes back for this long is given up, and a new one opened. */
const LEAST_SOCKET_TIMEOUT_MS = 2000
const SOCKET_TIMEOUTS_PER_TIMEOUT = 4

/** Between two tries of one script, while the connection comes back. */
const RETRY_DELAY_MS = 10

const reconnectDelay = (attempt: number): number =>
  Math.min(MAX_RECONNECT_DELAY_MS, 25 * 2 ** Math.min(attempt, 10))

/** What the user's options may say otherwise, and what the bounds and the order of the store need. */
function ownOptions(timeoutMs: number): object {
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    socketTimeout: Math.max(LEAST_SOCKET_TIMEOUT_MS, SOCKET_TIMEOUTS_PER_TIMEOUT * timeoutMs),
    autoResendUnfulfilledCommands: true,
    enableReadyCheck: true,
    monitor: false,
    readOnly: false,
    stringNumbers: false,
    protocol: 2,
    replyMapping: 'legacy',
    retryStrategy: reconnectDelay,
    sentinelRetryStrategy: reconnectDelay,
    // After a failover the address may lead to what has become a replica.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  }
}

type Client = Redis | Cluster

function duplicate(client: Client, timeoutMs: number): Client {
  const options = ownOptions(timeoutMs)
  if (!client.isCluster) return (client as Redis).duplicate(options)
  return (client as Cluster).duplicate([], {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    scaleReads: 'master',
    clusterRetryStrategy: reconnectDelay,
    redisOptions: options,
  })
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

interface Wire {
  readonly stream?: { cork(): void; uncork(): void; unref?(): void }
}

export function openConnection(usersClient: Client, timeoutMs: number): Connection {
  const client = duplicate(usersClient, timeoutMs)
  const scripts = client as unknown as Scripts
  const flushAtEndOfTick = createCork()
  let becomingReady: Promise<void> | undefined
  let isClosed = false
  // Faults reach whoever runs a script; without a listener they would be printed.
  client.on('error', () => {})
  client.on('connect', () => (client as Wire).stream?.unref?.())

  function whenReady(): Promise<void> | undefined {
    if (client.status === 'ready') return undefined
    if (client.status === 'wait') client.connect().catch(() => {})
    becomingReady ??= new Promise((resolve) => {
      client.once('ready', () => {
        becomingReady = undefined
        resolve()
      })
    })
    return becomingReady
  }

  async function evaluate(
    { source, sha }: Script,
    key: string,
    args: readonly (string | Buffer)[],
  ): Promise<unknown> {
    flushAtEndOfTick(client as Wire)
    try {
      return await scripts.evalshaBuffer(sha, 1, key, ...args)
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return await scripts.evalBuffer(source, 1, key, ...args)
    }
  }

  return {
    async run(script, key, args) {
      const deadline = performance.now() + timeoutMs
      for (let mayHaveRun = false; ; ) {
        if (isClosed) throw new NoReply('the store is closed', mayHaveRun)
        const ready = whenReady()
        if (ready !== undefined) await within(ready, deadline, mayHaveRun)
        mayHaveRun = true
        try {
          return await within(evaluate(script, key, args), deadline, mayHaveRun)
        } catch (error) {
          if (error instanceof NoReply || isServersAnswer(error)) throw error
          await within(sleep(RETRY_DELAY_MS, undefined, { ref: false }), deadline, mayHaveRun)
        }
      }
    },
    async masters() {
      const deadline = performance.now() + timeoutMs
      await within(Promise.resolve(whenReady()), deadline, false)
      return client.isCluster ? (client as Cluster).nodes('master') : [client as Redis]
    },
    close() {
      isClosed = true
      client.disconnect()
    },
  }
}

/** An error that Redis sent: the script has run, and nothing has come of it. */
const isServersAnswer = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ReplyError'

/** Commands of one tick leave in one packet: each would cost a system call of its own. */
function createCork(): (wire: Wire) => void {
  let isCorked = false
  return ({ stream }) => {
    if (isCorked || stream === undefined) return
    isCorked = true
    stream.cork()
    setImmediate(() => {
      isCorked = false
      stream.uncork()
    })
  }
}

/** Waits until the deadline, a moment of `performance.now`. */
export function within<T>(work: Promise<T>, deadline: number, mayHaveRun: boolean): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const giveUp = (): void => reject(new NoReply('Redis gave no reply in time', mayHaveRun))
    const timer = setTimeout(giveUp, Math.max(0, deadline - performance.now()))
    timer.unref()
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
