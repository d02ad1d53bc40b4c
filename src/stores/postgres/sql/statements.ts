import { randomUUID } from 'node:crypto'
import { textOfParts } from '../../../base/digest.js'
import { hash } from '../../../base/supported-node.js'
import { onlyRow, type Row, type Statement, textIn } from '../runner.js'
import { messageIncludes } from '../sql-state.js'
import {
  bytesLiteral,
  DEFAULT_SCHEMA,
  integerLiteral,
  intervalLiteral,
  intervalText,
  quotedSchema,
  settingLiteral,
  timeAfter,
  uuidLiteral,
} from './literals.js'

/** The ids of a record in the database, and the lock of its runs. */
export interface RecordIds {
  /** A UUID without hyphens: 16 bytes of a digest, without version and variant bits. */
  readonly id: string
  /** 16 bytes of a digest, in hexadecimal. */
  readonly fingerprint: string
  /** The advisory lock that a run of the key holds: a signed 64-bit integer. */
  readonly keyLock: string
}

/** The id of a used token in the database, and the lock for recording it. */
export interface TokenIds {
  /** A UUID like that of a record. */
  readonly id: string
  /** A signed 64-bit integer. */
  readonly lock: string
}

const ID_BYTES = 16

/** Derives the ids from the id of a record and a fingerprint. */
export function recordIds(
  recordId: string,
  fingerprint: string,
  schema: string = DEFAULT_SCHEMA,
): RecordIds {
  // All schemas of a database share the locks, but not the rows.
  const ofKey = bytesOf(['record', schema, recordId])
  const ofRequest = bytesOf(['request', schema, recordId, fingerprint])
  return {
    id: uuidIn(ofKey),
    fingerprint: ofRequest.toString('hex', 0, ID_BYTES),
    keyLock: lockIn(ofKey),
  }
}

/** Derives the ids from the digest that identifies a token. */
export function tokenIds(id: string, schema: string = DEFAULT_SCHEMA): TokenIds {
  const bytes = bytesOf(['token', schema, id])
  return { id: uuidIn(bytes), lock: lockIn(bytes) }
}

/** The lock for sweeping or migrating a schema. */
export const schemaLock = (work: 'sweep' | 'migration', schema: string): string =>
  lockIn(bytesOf([`lock of a ${work}`, schema]))

/** A digest of 32 bytes. The first part names the purpose, so that no two purposes share a digest. */
const bytesOf = (parts: readonly string[]): Buffer => hash('sha256', textOfParts(parts), 'buffer')

const uuidIn = (bytes: Buffer): string => bytes.toString('hex', 0, ID_BYTES)

/** A lock number from the 8 bytes after the id. */
const lockIn = (bytes: Buffer): string => bytes.readBigInt64BE(ID_BYTES).toString()

/** The result of opening a transaction. A record takes precedence over the lock. */
export type BeginResult =
  /** `fence` is the transaction's id. */
  | { readonly found: 'nothing'; readonly fence: string }
  | { readonly found: 'record'; readonly record: RecordRow }
  /** Another run has the lock of the key, or of the token; or the token is used. */
  | { readonly found: 'running' | 'token in use' | 'token used' }

export interface BeginOptions {
  /** The time limit of a statement, and of an idle transaction. */
  readonly transactionMs: number
  /** The token that the run uses up. */
  readonly token?: TokenValues | undefined
}

/** How often the server checks during a statement that the client is still connected. */
const CONNECTION_CHECK_MS = 500

const tokenArguments = (token: TokenValues | undefined): string =>
  token === undefined
    ? 'null, null, null'
    : `${uuidLiteral(token.ids.id)}, ${integerLiteral(token.ids.lock)}, ${intervalLiteral(token.ttlMs)}`

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
    if not is_locked then return 'running'; end if;
    if $5 is not null then
      -- Who has the lock may have used the token and not committed yet: an insert would wait.
      if not pg_catalog.pg_try_advisory_xact_lock($6) then return 'token in use'; end if;
      insert into ${schema}.used_token (id, expires_at)
        values ($5, pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) $7) on conflict do nothing;
      if not found then return 'token used'; end if;
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

/** The record of a key, as read for a request. */
export interface RecordRow {
  /** Whether the record belongs to the same request, and not to another one with the same key. */
  readonly isSame: boolean
  /** `undefined` if it was not stored, or belongs to another request. */
  readonly result: Uint8Array | undefined
  /** The id of the transaction that has written it; `undefined` if that was a statement of its own. */
  readonly run: string | undefined
}

/** A token that is used up: its ids, and how long it is stored. */
export interface TokenValues {
  readonly ids: TokenIds
  readonly ttlMs: number
}

/** The values that the record of a run gets. */
export interface RecordValues {
  readonly result: Uint8Array | undefined
  /** Counted from the execution of the statement, by the database's clock. */
  readonly retentionMs: number
}

/** The token that is used up with a record. */
export interface RecordedToken extends TokenValues {
  /** Whether the record is written only if no other request has used the token. */
  readonly isRequired: boolean
}

/** All statements that the store uses while it serves requests. */
export type Statements = ReturnType<typeof createStatements>

/**
 * Creates the statements for a schema. One with values has the same text for every request, so that a library may
 * prepare it.
 */
export function createStatements(schema: string) {
  const name = quotedSchema(schema)
  const table = `${name}.idempotency`
  const insertInto = `insert into ${table} (id, fingerprint, result, run, expires_at)`

  /** The columns of a record, but for the transaction, by `valuesOf`. Texts, because clients handle bytes differently. */
  const columns = (runSql: string): string =>
    "$1, pg_catalog.decode($2, 'hex'), pg_catalog.decode($3, 'base64'), " +
    `${runSql}, ${timeAfter('$4')}`
  const valuesOf = ({ id, fingerprint }: RecordIds, { result, retentionMs }: RecordValues) => [
    id,
    fingerprint,
    result === undefined ? null : base64(result),
    intervalText(retentionMs),
  ]

  /**
   * Records a token, unless it is recorded or another transaction is recording it. Never waits for another
   * transaction.
   */
  const consumeText = (id: string, lock: string, ttl: string): string =>
    // The holder of the lock has recorded the token, but may not have committed yet: an insert would wait.
    `insert into ${name}.used_token (id, expires_at) ` +
    `select ${id}, ${timeAfter(ttl)} where pg_catalog.pg_try_advisory_xact_lock(${lock}) ` +
    "on conflict do nothing returning 'yes' as consumed"

  // The planner needs less time for `values` than for a `select`.
  const insertText = `${insertInto} values (${columns(inTransaction('$5'))})`
  const insertAlone = `${insertInto} select ${columns('null')}`
  const withToken = `with used as (${consumeText('$5', '$6', '$7')}) ${insertAlone}`
  const KEPT = " returning 'yes' as kept"

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
        `select ${name}.begin_run(${uuidLiteral(ids.id)}, ${bytesLiteral(ids.fingerprint)}, ` +
        `${integerLiteral(ids.keyLock)}, ${settingLiteral(transactionMs)}, ${tokenArguments(token)}) as begun`,
      values: [],
    }),
    readBeginResult(rows: readonly Row[]): BeginResult {
      const reply = textIn(onlyRow(rows), 'begun') ?? ''
      switch (reply) {
        case 'running':
        case 'token in use':
        case 'token used':
          return { found: reply }
      }
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
        `then pg_catalog.concat(pg_catalog.pg_advisory_xact_lock(${integerLiteral(keyLock)})) end as ended`,
      values: [],
    }),
    /**
     * Inserts the record, as the last statement of a transaction. Fails in any transaction except
     * `fence`, in one that has failed (25P02), and if the key has a record (23505).
     */
    insertRecord: (
      ids: RecordIds,
      record: RecordValues & { readonly fence: string },
    ): Statement => ({
      text: insertText,
      values: [...valuesOf(ids, record), record.fence],
    }),
    /** Fails in any transaction except `fence`, and in `fence` if it has failed. */
    assertInTransaction: (fence: string): Statement => ({
      text: `select (${inTransaction(integerLiteral(fence))})::pg_catalog.text as coupled`,
      values: [],
    }),
    /** Inserts the record like `insertRecord`, but outside a transaction, and the token of its run with it. */
    insertRecordSeparately(ids: RecordIds, record: RecordValues, token?: RecordedToken): Statement {
      const values = valuesOf(ids, record)
      if (token === undefined) return { text: insertAlone + KEPT, values }
      const condition = token.isRequired ? ' where exists (select from used)' : ''
      return {
        text: withToken + condition + KEPT,
        values: [...values, token.ids.id, token.ids.lock, intervalText(token.ttlMs)],
      }
    },
    /** Whether `insertRecordSeparately` inserted the record. */
    readKept: ([row]: readonly Row[]): boolean =>
      row !== undefined && textIn(row, 'kept') === 'yes',
    /** Records the use of a token, outside a transaction. */
    consume({ ids: { id, lock }, ttlMs }: TokenValues): Statement {
      const text = consumeText(uuidLiteral(id), integerLiteral(lock), intervalLiteral(ttlMs))
      return { text, values: [] }
    },
    /** Whether `consume` recorded the token. */
    readConsumed: ([row]: readonly Row[]): boolean =>
      row !== undefined && textIn(row, 'consumed') === 'yes',
    findRecord: (ids: RecordIds): Statement => ({
      text: `select ${recordText(bytesLiteral(ids.fingerprint))} as record from ${table} where id OPERATOR(pg_catalog.=) ${uuidLiteral(ids.id)}`,
      values: [],
    }),
    readRecord: ([row]: readonly Row[]): RecordRow | undefined =>
      row && parseRecordRow(textIn(row, 'record') ?? ''),
  }
}

/** An SQL expression over the table for the text that `readRecord` reads: words separated by spaces. */
function recordText(fingerprint: string): string {
  const isSame = `fingerprint OPERATOR(pg_catalog.=) ${fingerprint}`
  return (
    `pg_catalog.concat_ws(' ', case when ${isSame} then 'same' else 'other' end, ` +
    "coalesce(run::pg_catalog.text, 'alone'), " +
    `case when ${isSame} then pg_catalog.encode(result, 'base64') end)`
  )
}

function parseRecordRow(text: string): RecordRow {
  const [request, run, result] = text.split(' ')
  if (!/^(same|other) (\d+|alone)( |$)/.test(text)) {
    throw new TypeError('Postgres returned an unknown form of a record')
  }
  return {
    run: run === 'alone' ? undefined : run,
    isSame: request === 'same',
    result: result === undefined ? undefined : Buffer.from(result, 'base64'),
  }
}

const base64 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64')

// The proof that a statement runs in the transaction of its run.

/** Random for each process, so that no other error can contain it. */
const MARKER = randomUUID()

/**
 * Part of the server's error if `inTransaction` fails. No statement contains the whole text, so that a
 * client error that quotes the statement does not match.
 */
const WRONG_TRANSACTION = `express-service-auth: transaction ended ${MARKER}`

/**
 * An SQL expression for the id of the transaction, which fails in any transaction except `fence`. It fails
 * by the cast of a text to boolean, because before Postgres 16 a cast to `xid8` takes any text. `concat` builds this
 * text, because Postgres assumes that `concat` depends on settings, and so does not evaluate it before the statement
 * runs.
 */
const inTransaction = (fence: string): string =>
  'case when pg_catalog.pg_current_xact_id()::pg_catalog.text ' +
  `OPERATOR(pg_catalog.=) ${fence} then pg_catalog.pg_current_xact_id() ` +
  `else pg_catalog.concat('express-service-auth: transaction ended ', '${MARKER}')` +
  '::boolean::pg_catalog.text::pg_catalog.xid8 end'

/**
 * Whether a statement failed because it was no longer in the transaction of its run, which only the handler
 * can have ended.
 */
export const isEndedByHandler = (error: unknown): boolean =>
  messageIncludes(error, WRONG_TRANSACTION)
