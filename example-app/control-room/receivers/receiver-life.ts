import { UnavailableError } from '../ports.js'
import { type Calls, createCalls, type Handlers } from './ipc/calls.js'
import type { DeniedVersion } from './ipc/denied-list.js'
import { launchReceiver } from './launch-receiver.js'
import type { Addresses, Beginning, FromReceiver } from './messages.js'

/** What a receiver sends beside questions and answers. */
export type News = Extract<FromReceiver, { type: 'report' | 'health' | 'gate' | 'in-force' }>

export interface LifeOptions {
  readonly program: string | undefined
  /** What the process may call. */
  handlers(calls: () => Calls): Handlers
  /** Sends the process what is denied, until it ends. */
  watchDenied(listener: (denied: DeniedVersion) => void): () => void
  receive(news: News): void
  /** The process is gone, whoever has ended it. */
  onGone(): void
}

/** One life of a receiver: a process. */
export interface ReceiverLife {
  readonly pid: number | undefined
  readonly calls: Calls
  /** Its addresses, once it serves. Rejects with an `UnavailableError` when it never will. */
  readonly serving: Promise<Addresses>
  kill(): Promise<void>
}

/** Milliseconds: to compile it takes some seconds on a busy machine. */
const SERVES_WITHIN_MS = 60_000

export function beginLife(beginning: Beginning, options: LifeOptions): ReceiverLife {
  const { receiver } = beginning
  let serves: (addresses: Addresses) => void = () => undefined
  let fails: (error: Error) => void = () => undefined
  const serving = new Promise<Addresses>((resolve, reject) => {
    serves = resolve
    fails = (error) => reject(error)
  })
  // The caller gets the rejection.
  serving.catch(() => undefined)
  const fail = (why: string): void =>
    fails(new UnavailableError(`${receiver} cannot serve: ${why}`))

  const calls: Calls = createCalls(
    (message) => process.send(message),
    options.handlers(() => calls),
  )
  const process = launchReceiver(
    beginning,
    {
      receive(message) {
        if (message.type === 'serving') serves(message.addresses)
        else if (message.type === 'failed') fail(message.complaint)
        else if (isNews(message)) options.receive(message)
        else calls.receive(message)
      },
      onGone() {
        clearTimeout(timer)
        stopTelling()
        calls.end()
        fail('its process has ended')
        options.onGone()
      },
    },
    options.program,
  )
  const timer = setTimeout(() => {
    fail('it takes too long')
    void process.kill()
  }, SERVES_WITHIN_MS)
  serving.then(
    () => clearTimeout(timer),
    () => undefined,
  )
  const stopTelling = options.watchDenied((denied) => process.send({ type: 'denied', denied }))
  return { pid: process.pid, calls, serving, kill: process.kill }
}

const NEWS: readonly string[] = ['report', 'health', 'gate', 'in-force']

const isNews = (message: FromReceiver): message is News => NEWS.includes(message.type)
