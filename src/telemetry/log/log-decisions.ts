import { Console } from 'node:console'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import type { KeySetEvent } from '../../base/decision/key-set-event.js'
import type { MigrationDecision, MigrationProgress } from '../../base/decision/migration-event.js'
import { listenTo, notify } from '../../base/decision/observers.js'
import type { DenylistEvent, PostgresEvent, StoreEvent } from '../../base/decision/store-event.js'
import { flag, integerBetween, lazy, optionsObject, parseOptions } from '../../base/options.js'
import { printableJson } from '../../base/printable.js'
import {
  type Level,
  type Line,
  lineOfDecision,
  lineOfDenylist,
  lineOfIdempotency,
  lineOfKeySet,
  lineOfMigration,
  lineOfPostgres,
  lineOfStore,
} from './line.js'
import { rateLimit } from './rate-limit.js'

/**
 * The logger that `logDecisions` writes to: pino, or any object with these functions. `console`, or another
 * instance of Node's `Console`, gets one line of text instead: the sentence, then the event as JSON.
 */
export interface Logger {
  /** Accepted requests, and changes of keys and denylists. Each function gets an event and a sentence that explains it. */
  info(event: object, message: string): unknown
  /** Refusals, and what to look at: writes without a key or whose answer was not stored, unusable keys. */
  warn(event: object, message: string): unknown
  /** Failures of this service. */
  error(event: object, message: string): unknown
}

/** Options of `logDecisions`. */
export interface LogOptions {
  /** Also logs accepted requests, at `info`. Default: `false`. */
  readonly accepted?: boolean | undefined
  /** Maximum number of lines per reason and caller in `everySeconds`, 1 to 1000. Default: 10. */
  readonly burst?: number | undefined
  /** The period of `burst` in seconds, an integer from 1 to 3600. Default: 10. */
  readonly everySeconds?: number | undefined
}

/** Limits memory: the rate limit stores the times of that many lines. */
const MAX_BURST = 1000
const MAX_SECONDS = 3600

const schema = lazy(() =>
  optionsObject({
    accepted: flag().default(false),
    burst: integerBetween(1, MAX_BURST).default(10),
    everySeconds: integerBetween(1, MAX_SECONDS).default(10),
  }),
)

const LEVELS: readonly Level[] = ['info', 'warn', 'error']

function isLogger(value: unknown): boolean {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return LEVELS.every((level) => typeof (value as Partial<Logger>)[level] === 'function')
}

/** A console would print an object over several lines. */
function lineLogger(console: Console): Logger {
  const textOf = (event: object, message: string): string => `${message} ${printableJson(event)}`
  return {
    info: (event, message) => console.info(textOf(event, message)),
    warn: (event, message) => console.warn(textOf(event, message)),
    error: (event, message) => console.error(textOf(event, message)),
  }
}

/**
 * Logs the events that the package publishes on its diagnostics channels: refusals at `warn`, failures of this service at
 * `error`, changes of keys and denylists and the progress of a migration at `info`. It writes at most `burst` lines
 * per reason and caller in each period of `everySeconds`, then one with the number of suppressed lines. Call it once per
 * process, because each call logs every event. Errors of the logger have no effect.
 *
 * Returns a function that stops the logging and writes how many lines were suppressed so far.
 *
 * @throws TypeError if the logger lacks a function, or an option is unknown or of the wrong type.
 *
 * @example
 * ```ts
 * import { logDecisions } from 'express-service-auth'
 *
 * const stop = logDecisions(console, { accepted: true })
 * process.once('SIGTERM', stop)
 * ```
 */
export function logDecisions(logger: Logger, options: LogOptions = {}): () => void {
  if (!isLogger(logger)) {
    throw new TypeError('logDecisions: logger must have the functions info, warn and error')
  }
  const { accepted, burst, everySeconds } = parseOptions('logDecisions options', schema, options)
  const output = logger instanceof Console ? lineLogger(logger) : logger

  function write(level: Level, event: object, message: string): void {
    notify((line) => output[level](line, message), event)
  }

  const limiter = rateLimit({
    burst,
    everyMs: everySeconds * 1000,
    report(level, suppressed) {
      const { lines, reason } = suppressed
      const count = lines === 1 ? '1 more line' : `${lines} more lines`
      write(level, suppressed, `Suppressed ${count} within ${everySeconds} s: ${reason}.`)
    },
  })

  function log(event: object, line: Line | undefined): void {
    if (line !== undefined && limiter.admit(line)) write(line.level, event, line.message)
  }

  const listening = [
    listenTo<DecisionEvent>('decision', (event) => {
      if (accepted || event.outcome !== 'accepted') log(event, lineOfDecision(event))
    }),
    listenTo<IdempotencyEvent>('idempotency', (event) => {
      const line = lineOfIdempotency(event)
      if (accepted || line.level !== 'info') log(event, line)
    }),
    listenTo<KeySetEvent>('keys', (event) => log(event, lineOfKeySet(event))),
    listenTo<DenylistEvent>('denylist', (event) => log(event, lineOfDenylist(event))),
    listenTo<StoreEvent>('store', (event) => log(event, lineOfStore(event))),
    listenTo<MigrationDecision | MigrationProgress>('migration', (event) => {
      const isAccepted = 'outcome' in event && event.outcome === 'accepted'
      if (accepted || !isAccepted) log(event, lineOfMigration(event))
    }),
    listenTo<PostgresEvent>('postgres', (event) => log(event, lineOfPostgres(event))),
  ]
  return () => {
    for (const stop of listening) stop()
    limiter.flush()
  }
}
