import type { Row, Statement } from '../runner.js'
import { bytesLiteral, lockLiteral, quotedSchema, settingLiteral, uuidLiteral } from './literals.js'
import { onlyRow, textIn } from './read-columns.js'
import type { RecordIds } from './record-ids.js'
import { parseRecordRow, type RecordRow } from './record-statements.js'

/** The result of opening a transaction. A record takes precedence over the lock. */
export type BeginResult =
  /** `fence` is the transaction's id. */
  | { readonly found: 'nothing'; readonly fence: string }
  /** Another run of the key has the lock. */
  | { readonly found: 'run' }
  | { readonly found: 'record'; readonly record: RecordRow }

export interface BeginOptions {
  /** The time limit of a statement, and of an idle transaction. */
  readonly transactionMs: number
  /** Whether the server checks during a statement that the client is still connected; see `checkConnection`. */
  readonly checksConnection: boolean
}

/** How often the server checks during a statement that the client is still connected. */
const CONNECTION_CHECK_MS = 500

/** The statements that open a run's transaction or wait for its end. */
export function createBeginStatements(schema: string) {
  const call = `select ${quotedSchema(schema)}.begin_run(`
  return {
    /**
     * Sets the limits, tries the lock and looks for the record, in one call of the function `begin_run`.
     * The function locks and looks in two statements, because a statement sees only what was committed before it
     * began: one that did both could miss a record that was committed before it had the lock. A function keeps
     * its plans, while unnamed statements are planned again for each request.
     */
    begin: (ids: RecordIds, { transactionMs, checksConnection }: BeginOptions): Statement => ({
      text:
        `${call}${uuidLiteral(ids.id)}, ${bytesLiteral(ids.fingerprint)}, ` +
        // The arguments have types, because untyped ones would match a function of this name that takes texts.
        `${lockLiteral(ids.keyLock)}::bigint, ` +
        `${settingLiteral(transactionMs)}::pg_catalog.text, ${checksConnection}) as begun`,
      values: [],
    }),
    readBeginResult(rows: readonly Row[]): BeginResult {
      const reply = textIn(onlyRow(rows), 'begun') ?? ''
      if (reply === RUNNING) return { found: 'run' }
      if (/^\d+$/.test(reply)) return { found: 'nothing', fence: reply }
      return { found: 'record', record: parseRecordRow(reply) }
    },
    /**
     * Waits until no run has the key; outside a transaction, so that the lock is free again immediately.
     * Fails with 55P03 after `waitMs`.
     */
    awaitRun: ({ keyLock }: RecordIds, { waitMs }: { readonly waitMs: number }): Statement => ({
      // `case` sets the limit before the wait. `concat` avoids the type `void`, which not every client can read.
      text:
        `select case when pg_catalog.set_config('lock_timeout', ${settingLiteral(waitMs)}, true) is not null ` +
        `then pg_catalog.concat(pg_catalog.pg_advisory_xact_lock(${lockLiteral(keyLock)})) end as ended`,
      values: [],
    }),
    /** Runs outside a transaction. Fails if the server cannot check for disconnected clients. */
    checkConnection: (): Statement => ({
      text: `select pg_catalog.set_config('client_connection_check_interval', ${settingLiteral(CONNECTION_CHECK_MS)}, true) as checked`,
      values: [],
    }),
  }
}

/** The settings that get the time limit of a transaction. */
export const TIMEOUTS: readonly string[] = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
]

/** The setting that gets a limit of its own. */
export const CONNECTION_CHECK = 'client_connection_check_interval'
export const CONNECTION_CHECK_LIMIT: string = settingLiteral(CONNECTION_CHECK_MS)

/**
 * plpgsql that lowers a setting to the limit for this transaction, and never raises it; 0 means no limit.
 * plpgsql evaluates these statements itself: one that it passes to the server's executor costs more than
 * the setting. Uses the variable `setting`.
 */
export const lower = (setting: string, limit: string): string => `\
    setting := pg_catalog.current_setting('${setting}');
    if setting OPERATOR(pg_catalog.=) '0'
      or setting::pg_catalog.interval OPERATOR(pg_catalog.>) ${limit}::pg_catalog.interval then
      setting := pg_catalog.set_config('${setting}', ${limit}, true);
    end if;
`

/** The reply of `begin_run` if another run has the lock. Otherwise it is the record or the transaction's id. */
export const RUNNING = 'running'
