import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { format } from 'node:util'
import { chai, vi } from 'vitest'
import { knowHeaders } from './credentials.js'
import { currentSearch, recordOutput } from './session.js'

/**
 * Watches requests and output of this process until its end. Only the first call in a process has an effect,
 * because a worker runs several test files. Call it before `beginSession`.
 */
export function watchProcess(): void {
  if (currentSearch() !== undefined) return
  watchRequests()
  watchConsole()
  watchStandardStreams()
  watchErrors()
}

/** A request of `fetch`: names and values in turn, or in older releases of Node lines. */
interface FetchRequest {
  readonly headers: readonly unknown[] | string
}

/** Learns the secrets in all requests that this process receives or sends. */
function watchRequests(): void {
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { request: IncomingMessage }
    knowHeaders(request.rawHeaders)
  })
  subscribe('http.client.request.start', (message) => {
    const { request } = message as { request: ClientRequest }
    knowHeaders(Object.entries(request.getHeaders()).flat(1))
  })
  subscribe('undici:request:create', (message) => {
    const { headers } = (message as { request: FetchRequest }).request
    knowHeaders(typeof headers === 'string' ? headers.split(/: |\r\n/) : headers)
  })
}

/** All channels of the package. `onDecision` gets the event objects of the channel. */
const CHANNELS = ['decision', 'keys', 'idempotency', 'denylist', 'store', 'migration'].map(
  (name) => `express-service-auth:${name}`,
)

const recordEvent = (event: unknown, name: string | symbol): void =>
  recordOutput(`the channel ${String(name)}`, event)

export function watchChannels(): void {
  for (const name of CHANNELS) subscribe(name, recordEvent)
}

/** Called at the end of a test file, and at the top of a file that tests channels without subscribers. */
export function leaveChannels(): void {
  for (const name of CHANNELS) unsubscribe(name, recordEvent)
}

const LEVELS = ['debug', 'dir', 'error', 'info', 'log', 'table', 'trace', 'warn'] as const

const recordLine = (level: string, values: readonly unknown[]): void =>
  recordOutput(`console.${level}`, [format(...values), values])

function watchConsole(): void {
  for (const level of LEVELS) {
    const write = console[level].bind(console) as (...values: unknown[]) => void
    console[level] = (...values: unknown[]) => {
      recordLine(level, values)
      write(...values)
    }
  }
}

/** Records the calls that spies have kept from `console`. Call it after each test. */
export function recordSpiedConsole(): void {
  for (const level of LEVELS) {
    if (!vi.isMockFunction(console[level])) continue
    for (const values of vi.mocked(console[level]).mock.calls) recordLine(level, values)
  }
}

function watchStandardStreams(): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name]
    const write = stream.write.bind(stream) as (...parameters: unknown[]) => boolean
    stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
      recordOutput(`${name} of the tests`, chunk)
      return write(chunk, ...rest)
    }
  }
}

/** The matchers that tests use on errors. */
const ASSERTIONS = [
  'toBe',
  'toBeInstanceOf',
  'toEqual',
  'toHaveProperty',
  'toMatchInlineSnapshot',
  'toMatchObject',
  'toMatchSnapshot',
  'toSatisfy',
  'toStrictEqual',
  'toThrow',
  'toThrowError',
]

type Assertion = (this: object, ...parameters: unknown[]) => unknown

/** Records each error on which a test asserts, thrown and rejected ones included. */
function watchErrors(): void {
  chai.use(({ Assertion: { prototype } }, { flag, overwriteMethod }) => {
    for (const name of ASSERTIONS) {
      overwriteMethod(prototype, name, ((original: Assertion): Assertion => {
        return function (...parameters) {
          const subject: unknown = flag(this as never, 'object')
          const isCalled = name.startsWith('toThrow') && typeof subject === 'function'
          if (isCalled) flag(this as never, 'object', recordingErrors(subject as () => unknown))
          else recordErrorsOf(subject)
          return original.apply(this, parameters)
        }
      }) as Parameters<typeof overwriteMethod>[2])
    }
  })
}

/** Records errors and their causes with all members, also those that are not enumerable. */
function recordErrorsOf(value: unknown): void {
  for (const each of [value].flat()) if (each instanceof Error) recordOutput('an error', each)
}

function recordingErrors(call: () => unknown): () => unknown {
  return () => {
    try {
      return call()
    } catch (error) {
      recordErrorsOf(error)
      throw error
    }
  }
}
