import { recordOutput } from './session.js'

interface Exporter {
  export(items: never, done: never): void
}

interface Logger {
  info(...values: never): unknown
  warn(...values: never): unknown
  error(...values: never): unknown
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

/** Makes the search see what a logger gets. Returns the same logger. Its written lines are not searched. */
export function searchedLogger<L extends Logger>(logger: L): L {
  for (const level of ['info', 'warn', 'error'] as const) {
    const write = logger[level].bind(logger) as (...values: unknown[]) => unknown
    Object.assign(logger, {
      [level](...values: unknown[]) {
        recordOutput(`the log, ${level},`, values)
        return write(...values)
      },
    })
  }
  return logger
}
