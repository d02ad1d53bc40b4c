import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { format } from 'node:util'
import { afterAll, afterEach, chai, expect, vi } from 'vitest'
import {
  beginSearch,
  currentSearch,
  findLeaks,
  knowSecret,
  knowToken,
  recordOutput,
} from './index.js'

// For each test file: learns the secrets, records the output, and fails the file if a secret is in its output.

/** Records the events of all channels of the package; `onDecision` gets the same objects. */
function watchChannels(): () => void {
  const record = (event: unknown, name: string | symbol): void =>
    recordOutput(`the channel ${String(name)}`, event)
  const names = ['decision', 'keys', 'idempotency', 'denylist', 'store', 'migration'].map(
    (name) => `express-service-auth:${name}`,
  )
  for (const name of names) subscribe(name, record)
  return () => {
    for (const name of names) unsubscribe(name, record)
  }
}

/** Watches requests and output of this process until its end. */
function watchProcess(): void {
  watchRequests()
  watchConsole()
  watchStandardStreams()
  watchErrors()
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
    // Names and values in turn, or in older releases of Node lines.
    const { headers } = (message as { request: { headers: unknown[] | string } }).request
    knowHeaders(typeof headers === 'string' ? headers.split(/: |\r\n/) : headers)
  })
}

/** Each word of it, because a test may send a malformed credential. */
const knowCredential = (value: string): void => value.split(/[\s,]+/).forEach(knowToken)

const SECRET_HEADERS = new Map<string, (value: string) => void>([
  ['authorization', knowCredential],
  ['proxy-authorization', knowCredential],
  ['idempotency-key', (key) => knowSecret('an idempotency key', key.replace(/^"|"$/g, ''))],
  ['api-key', (key) => knowSecret('an API key', key)],
])

/** `headers` has names and values in turn. */
function knowHeaders(headers: readonly unknown[]): void {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const know = SECRET_HEADERS.get(String(headers[index]).toLowerCase())
    for (const value of [headers[index + 1]].flat()) know?.(String(value))
  }
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

/** Records the calls that spies have kept from `console`. */
function recordSpiedConsole(): void {
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

type Assertion = (this: object, ...parameters: unknown[]) => unknown

/** Records each error on which a test asserts, thrown and rejected ones included. */
function watchErrors(): void {
  chai.use(({ Assertion: { prototype } }, { flag, overwriteMethod }) => {
    const matchers = Object.getOwnPropertyNames(prototype).filter((name) => /^to[A-Z]/.test(name))
    for (const name of matchers) {
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

expect.setState({ currentTestName: '' })
// A worker runs several test files.
if (currentSearch() === undefined) watchProcess()
const search = beginSearch(() => expect.getState().currentTestName || undefined)
search.leaveChannels = watchChannels()

afterEach(recordSpiedConsole)

afterAll(() => {
  search.leaveChannels()
  const findings = findLeaks(search)
  if (findings.length > 0) throw new Error(`A secret has come out:\n${findings.join('\n')}`)
})
