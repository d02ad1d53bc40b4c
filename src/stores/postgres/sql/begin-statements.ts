import type { Row, Statement } from '../runner.js'
import {
  bytesLiteral,
  intervalText,
  lockLiteral,
  quotedSchema,
  settingLiteral,
  uuidLiteral,
} from './literals.js'
import { onlyRow, textIn } from './read-columns.js'
import type { RecordIds } from './record-ids.js'
import {
  parseRecordRow,
  type RecordRow,
  recordText,
  type TokenValues,
} from './record-statements.js'

/** The result of opening a transaction. A record takes precedence over the lock. */
export type BeginResult =
  /** `fence` is the transaction's id. */
  | { readonly found: 'nothing'; readonly fence: string }
  /** Another run of the key has the lock. */
  | { readonly found: 'other_run' }
  /** Another run, which has not ended, is using the token. */
  | { readonly found: 'token_in_use' }
  | { readonly found: 'used_token' }
  | { readonly found: 'record'; readonly record: RecordRow }

export interface BeginOptions {
  /** The time limit of a statement, and of an idle transaction. */
  readonly transactionMs: number
  /** The token that the run uses up. */
  readonly token?: TokenValues | undefined
}

/** How often the server checks during a statement that the client is still connected. */
const CONNECTION_CHECK_MS = 500

/** The statements that open a run's transaction or wait for its end. */
export function createBeginStatements(schema: string) {
  const call = `select ${quotedSchema(schema)}.begin_run(`
  return {
    /**
     * Sets the limits, tries the lock, looks for the record and uses up the token, in one call of the function
     * `begin_run`.
     * The function locks and looks in two statements, because a statement sees only what was committed before it
     * began: one that did both could miss a record that was committed before it had the lock. A function keeps
     * its plans, while unnamed statements are planned again for each request.
     */
    begin: (ids: RecordIds, { transactionMs, token }: BeginOptions): Statement => ({
      text:
        `${call}${uuidLiteral(ids.id)}, ${bytesLiteral(ids.fingerprint)}, ` +
        // The arguments have types, because untyped ones would match a function of this name that takes texts.
        `${lockLiteral(ids.keyLock)}::bigint, ` +
        `${settingLiteral(transactionMs)}::pg_catalog.text, ${tokenArguments(token)}) as begun`,
      values: [],
    }),
    readBeginResult(rows: readonly Row[]): BeginResult {
      const reply = textIn(onlyRow(rows), 'begun') ?? ''
      if (reply === RUNNING) return { found: 'other_run' }
      if (reply === IN_USE) return { found: 'token_in_use' }
      if (reply === USED) return { found: 'used_token' }
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
  }
}

// The replies of `begin_run` if another run has the lock of the key or of the token, or if the token is used.
// Otherwise it replies with the record or the transaction's id.
const RUNNING = 'running'
const IN_USE = 'token in use'
const USED = 'token used'

const tokenArguments = (token: TokenValues | undefined): string =>
  token === undefined
    ? 'null::pg_catalog.uuid, null::bigint, null::pg_catalog.interval'
    : `${uuidLiteral(token.ids.id)}, ${lockLiteral(token.ids.lock)}::bigint, ` +
      `'${intervalText(token.ttlMs)}'::pg_catalog.interval`

/** The settings that get the time limit of a transaction. */
const TIMEOUTS = ['statement_timeout', 'idle_in_transaction_session_timeout']

/**
 * plpgsql that creates the function `begin_run` in a schema; it uses the variable `found`. The parameters have no
 * names, because a name could be taken for a column. Not every platform can check connections, and one that
 * cannot refuses the setting, so the function sets it only if the server takes it here.
 */
export const createBeginRun = (schema: string): string => `\
  begin
    perform pg_catalog.set_config('client_connection_check_interval', ${settingLiteral(CONNECTION_CHECK_MS)}, true);
    found := $check$
${lower('client_connection_check_interval', settingLiteral(CONNECTION_CHECK_MS))}$check$;
  exception when invalid_parameter_value then
    found := '';
  end;
  -- Begins a run: sets its time limits, tries its lock, and then looks for its record, each with a snapshot
  -- of its own; if there is none, uses up the token. Parameters: the id and the fingerprint of the record, the lock
  -- of the key, the time limit of the transaction, and, or null, the id and the lock of the token, and how long
  -- it is stored. All names are qualified, because the caller sets the search path.
  execute pg_catalog.replace($create$
  create or replace function ${schema}.begin_run(
      pg_catalog.uuid, pg_catalog.bytea, bigint, pg_catalog.text,
      pg_catalog.uuid, bigint, pg_catalog.interval)
    returns pg_catalog.text language plpgsql volatile security invoker
  as $function$
  #variable_conflict use_column
  declare
    setting pg_catalog.text;
    is_locked boolean;
    stored pg_catalog.text;
  begin
${TIMEOUTS.map((setting) => lower(setting, '$4')).join('')}\
    -- connection check
    is_locked := pg_catalog.pg_try_advisory_xact_lock($3);
    select ${recordText('$2')}
      into stored from ${schema}.idempotency where id OPERATOR(pg_catalog.=) $1;
    if stored is not null then return stored; end if;
    if not is_locked then return '${RUNNING}'; end if;
    if $5 is not null then
      -- Who has the lock may have used the token and not committed yet: an insert would wait.
      if not pg_catalog.pg_try_advisory_xact_lock($6) then return '${IN_USE}'; end if;
      insert into ${schema}.used_token (id, expires_at)
        values ($5, pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) $7) on conflict do nothing;
      if not found then return '${USED}'; end if;
    end if;
    -- Only to write: both the id and the rollback of a transaction that has one are expensive.
    return pg_catalog.pg_current_xact_id()::pg_catalog.text;
  end
  $function$
  $create$, '-- connection check', found);
`

/**
 * plpgsql that lowers a setting to the limit for this transaction, and never raises it; 0 means no limit.
 * plpgsql evaluates these statements itself: one that it passes to the server's executor costs more than
 * the setting. Uses the variable `setting`.
 */
const lower = (setting: string, limit: string): string => `\
    setting := pg_catalog.current_setting('${setting}');
    if setting OPERATOR(pg_catalog.=) '0'
      or setting::pg_catalog.interval OPERATOR(pg_catalog.>) ${limit}::pg_catalog.interval then
      setting := pg_catalog.set_config('${setting}', ${limit}, true);
    end if;
`
