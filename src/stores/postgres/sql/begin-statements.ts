import type { Row, Statement } from '../runner.js'
import { bytesLiteral, lockLiteral, quotedSchema, settingLiteral, uuidLiteral } from './literals.js'
import { onlyRow, textIn } from './read-columns.js'
import type { RecordIds } from './record-ids.js'
import { type KeptRecord, readRecord } from './record-statements.js'

/** What a transaction has found when it was opened. A record counts for more than a lock. */
export type Opened =
  | {
      readonly lock: 'taken'
      /** The transaction's id. */
      readonly fence: string
      readonly record: KeptRecord | undefined
    }
  | {
      /** Another run of the key has the lock. */
      readonly lock: 'running'
      readonly record: KeptRecord | undefined
    }

export interface Opening {
  /** The longest that a statement, or an idle transaction, may take. */
  readonly transactionMs: number
  /** Whether the server looks for a caller that is gone while it works; see `probe`. */
  readonly checksConnection: boolean
}

/** What opens the transaction of a run. */
export interface OpeningStatements {
  /**
   * Its bounds, its lock, and the look for a record, in one call of the function `begin_run`. There they
   * are three statements, because each sees what was committed before it began: one that looks while it
   * locks sees what was there before it had the lock. A function keeps its plans, where statements
   * without names are planned again for each request.
   */
  open(ids: RecordIds, opening: Opening): Statement
  readOpened(rows: readonly Row[]): Opened
  /**
   * Waits until nobody runs the key; in no transaction, so that the lock is free again at once. Fails
   * with 55P03 after `waitMs`.
   */
  awaitEnd(ids: RecordIds, options: { readonly waitMs: number }): Statement
  /** In no transaction: fails where the server cannot look for a caller that is gone. */
  probe(): Statement
}

/** How often a server that works looks whether the caller is still there: 500 ms. */
const CONNECTION_CHECK_MS = 500

export function createOpeningStatements(schema: string): OpeningStatements {
  const call = `select ${quotedSchema(schema)}.begin_run(`
  return {
    open: (ids, { transactionMs, checksConnection }) => ({
      text:
        `${call}${uuidLiteral(ids.id)}, ${bytesLiteral(ids.fingerprint)}, ` +
        // With each type: a text without one would rather go to a function of this name that takes texts.
        `${lockLiteral(ids.keyLock)}::bigint, ` +
        `${settingLiteral(transactionMs)}::pg_catalog.text, ${checksConnection}) as opened`,
      values: [],
    }),
    readOpened(rows) {
      const [, lock, record] = OPENED.exec(textIn(onlyRow(rows), 'opened') ?? '') ?? []
      if (lock === undefined) throw new TypeError('Postgres must say who has the lock')
      const found = { record: record === undefined ? undefined : readRecord(record) }
      if (lock === 'running') return { lock, ...found }
      return { lock: 'taken', fence: lock, ...found }
    },
    awaitEnd: ({ keyLock }, { waitMs }) => ({
      // `case` sets the bound before it waits. `void` is a type that not every client can read.
      text:
        `select case when pg_catalog.set_config('lock_timeout', ${settingLiteral(waitMs)}, true) is not null ` +
        `then pg_catalog.concat(pg_catalog.pg_advisory_xact_lock(${lockLiteral(keyLock)})) end as ended`,
      values: [],
    }),
    probe: () => ({
      text: `select pg_catalog.set_config('client_connection_check_interval', ${settingLiteral(CONNECTION_CHECK_MS)}, true) as checked`,
      values: [],
    }),
  }
}

/** Both are bounded by the time of a transaction. */
export const TIMEOUTS: readonly string[] = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
]

/** Bounded by a time of its own. */
export const CONNECTION_CHECK = 'client_connection_check_interval'
export const CONNECTION_CHECK_LIMIT: string = settingLiteral(CONNECTION_CHECK_MS)

/**
 * Lowers a setting of the transaction to the limit, and never raises it; zero is none. Statements of
 * plpgsql that it evaluates itself: what it gives to the server's executor costs more than the setting.
 * Uses the variable `held`.
 */
export const lower = (setting: string, limit: string): string => `\
    held := pg_catalog.current_setting('${setting}');
    if held OPERATOR(pg_catalog.=) '0'
      or held::pg_catalog.interval OPERATOR(pg_catalog.>) ${limit}::pg_catalog.interval then
      held := pg_catalog.set_config('${setting}', ${limit}, true);
    end if;
`

/** Tries the lock: the transaction's id, or `running`. Without a table, as an expression. */
export const tryLock = (keyLock: string): string =>
  `case when pg_catalog.pg_try_advisory_xact_lock(${keyLock}) ` +
  "then pg_catalog.pg_current_xact_id()::pg_catalog.text else 'running' end"

/** The lock, or the fence of who has it; then the record, where there is one. */
const OPENED = /^(running|\d+)(?: (.*))?$/s
