import { recordOutput } from './session.js'

interface Exporter {
  export(items: never, done: never): void
}

interface Logger {
  info(...values: never): unknown
  warn(...values: never): unknown
  error(...values: never): unknown
}

/** The same exporter of OpenTelemetry, of spans or of metrics; what it is given is searched. */
export function searchedExporter<E extends Exporter>(exporter: E): E {
  const send = exporter.export.bind(exporter) as (...parameters: unknown[]) => void
  exporter.export = (items: unknown, done: unknown) => {
    recordOutput('OpenTelemetry', Array.isArray(items) ? items.map(withoutMachinery) : items)
    send(items, done)
  }
  return exporter
}

/** A span leads to its exporter, and that to all other spans. */
function withoutMachinery(span: Record<string, unknown>): object {
  const { name, attributes, events, links, status, resource } = span
  return { name, attributes, events, links, status, resource }
}

/** The same logger; what it is given is searched. Of a logger that writes, search the lines too. */
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
