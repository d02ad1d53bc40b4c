import type { SecretKind, SecretSearch } from './secret-search.js'
import { textsIn } from './texts-in.js'

const SESSION: unique symbol = Symbol.for('express-service-auth tests, search for secrets')

// One for the process, although each test file loads this module again: the watchers of the process are
// installed once, and tell the search of the file that runs.
const holder = globalThis as { [SESSION]?: SecretSearch | undefined }

/** Makes the functions below pass what they get to this search. */
export function beginSession(search: SecretSearch | undefined): void {
  holder[SESSION] = search
}

export const currentSearch = (): SecretSearch | undefined => holder[SESSION]

/**
 * Tells the search a secret. It learns what is sent in `Authorization`, `Idempotency-Key` and `api-key` by
 * itself. Does nothing outside the test suite.
 */
export const knowSecret = (kind: SecretKind, value: string | Uint8Array): void =>
  currentSearch()?.know(kind, value)

/** Tells the search an output: all texts in the value. */
export function recordOutput(sink: string, value: unknown): void {
  const search = currentSearch()
  if (search === undefined) return
  for (const text of textsIn(value)) search.record(sink, text)
}

interface Exporter {
  export(items: never, done: never): void
}

/** Makes the search see what an exporter of OpenTelemetry gets. Returns the same exporter. */
export function searchedExporter<E extends Exporter>(exporter: E): E {
  const send = exporter.export.bind(exporter) as (...parameters: unknown[]) => void
  exporter.export = (items: unknown, done: unknown) => {
    recordOutput('OpenTelemetry', Array.isArray(items) ? items.map(dataOfSpan) : items)
    send(items, done)
  }
  return exporter
}

/** Returns only the data of a span, which also refers to its exporter and thereby to all other spans. */
function dataOfSpan(span: Record<string, unknown>): object {
  const { name, attributes, events, links, status, resource } = span
  return { name, attributes, events, links, status, resource }
}

type Logger = Record<'info' | 'warn' | 'error', (...values: never) => unknown>

/** Makes the search see what a logger gets. Returns the same logger. Its written lines are not searched. */
export function searchedLogger<L extends Logger>(logger: L): L {
  for (const level of ['info', 'warn', 'error'] as const) {
    const write = logger[level].bind(logger) as (...values: unknown[]) => unknown
    Object.assign(logger, {
      [level](...values: unknown[]) {
        recordOutput(`the log, ${level}`, values)
        return write(...values)
      },
    })
  }
  return logger
}
