import { randomUUID } from 'node:crypto'
import type { Row, Statement } from '../runner.js'
import { membersOf } from '../sql-state.js'
import {
  bytesLiteral,
  integerText,
  lockLiteral,
  quotedSchema,
  timeFromNow,
  uuidLiteral,
} from './literals.js'
import { textIn } from './read-columns.js'
import type { RecordIds, TokenIds } from './record-ids.js'

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

/** The statements on the tables of records and used tokens. */
export function createRecordStatements(schema: string) {
  const table = `${quotedSchema(schema)}.idempotency`
  const insertInto = `insert into ${table} (id, fingerprint, result, run, expires_at) select `

  function insert(ids: RecordIds, record: RecordValues, runSql: string): Statement {
    const { result, retentionMs } = record
    const bound = result === undefined ? 'null' : "pg_catalog.decode($1::pg_catalog.text, 'base64')"
    return {
      text:
        `${insertInto}${uuidLiteral(ids.id)}, ${bytesLiteral(ids.fingerprint)}, ${bound}, ` +
        `${runSql}, ${timeFromNow(retentionMs)}`,
      // Base64 text, because clients handle bytes differently.
      values: result === undefined ? [] : [base64(result)],
    }
  }

  /**
   * Records a token, unless it is recorded or another transaction is recording it. Never waits for another
   * transaction.
   */
  const consumeText = ({ ids: { id, lock }, ttlMs }: TokenValues): string =>
    // The holder of the lock has recorded the token, but may not have committed yet: an insert would wait.
    `insert into ${quotedSchema(schema)}.used_token (id, expires_at) ` +
    `select ${uuidLiteral(id)}, ${timeFromNow(ttlMs)} ` +
    `where pg_catalog.pg_try_advisory_xact_lock(${lockLiteral(lock)}) ` +
    "on conflict do nothing returning 'yes' as consumed"

  return {
    /**
     * Inserts the record, as the last statement of a transaction. Fails in any transaction except
     * `fence`, in one that has failed (25P02), and if the key has a record (23505).
     */
    insertRecord: (ids: RecordIds, record: RecordValues & { readonly fence: string }): Statement =>
      insert(ids, record, `(${inTransaction(record.fence)})::pg_catalog.xid8`),
    /** Fails in any transaction except `fence`, and in `fence` if it has failed. */
    assertInTransaction: (fence: string): Statement => ({
      text: `select ${inTransaction(fence)} as coupled`,
      values: [],
    }),
    /** Inserts the record like `insertRecord`, but outside a transaction, and the token of its run with it. */
    insertRecordSeparately(ids: RecordIds, record: RecordValues, token?: RecordedToken): Statement {
      const { text, values } = insert(ids, record, 'null')
      const using = token === undefined ? '' : `with used as (${consumeText(token)}) `
      const condition = token?.isRequired ? ' where exists (select from used)' : ''
      return { text: `${using}${text}${condition} returning 'yes' as kept`, values }
    },
    /** Whether `insertRecordSeparately` inserted the record. */
    readKept: ([row]: readonly Row[]): boolean =>
      row !== undefined && textIn(row, 'kept') === 'yes',
    /** Records the use of a token, outside a transaction. */
    consume: (token: TokenValues): Statement => ({ text: consumeText(token), values: [] }),
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
export function recordText(fingerprint: string): string {
  const isSame = `fingerprint OPERATOR(pg_catalog.=) ${fingerprint}`
  return (
    `pg_catalog.concat_ws(' ', case when ${isSame} then 'same' else 'other' end, ` +
    "coalesce(run::pg_catalog.text, 'alone'), " +
    `case when ${isSame} then pg_catalog.encode(result, 'base64') end)`
  )
}

export function parseRecordRow(text: string): RecordRow {
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
 * Matches the server's error if `inTransaction` fails. No statement contains the whole text, so that a
 * client error that quotes the statement does not match.
 */
const WRONG_TRANSACTION = new RegExp(`express-service-auth: transaction \\d+ ended ${MARKER}`)

const MESSAGES = ['message', 'originalMessage']

/**
 * An SQL expression for the id of the transaction as a text, which fails in any transaction except `fence`. It fails
 * by the cast of a text to boolean, because before Postgres 16 a cast to `xid8` takes any text. `concat` builds this
 * text, because Postgres assumes that `concat` depends on settings, and so does not evaluate it before the statement
 * runs.
 */
const inTransaction = (fence: string): string =>
  'case when pg_catalog.pg_current_xact_id() ' +
  `OPERATOR(pg_catalog.=) ${integerText(fence)} then ${integerText(fence)} ` +
  `else pg_catalog.concat('express-service-auth: transaction ', ${integerText(fence)}, ' ended ', ` +
  `'${MARKER}')::boolean::pg_catalog.text end`

/**
 * Whether a statement failed because it was no longer in the transaction of its run, which only the handler
 * can have ended. Never throws.
 */
export function isEndedByHandler(error: unknown): boolean {
  for (const text of membersOf(error, MESSAGES)) {
    if (typeof text === 'string' && WRONG_TRANSACTION.test(text)) return true
  }
  return false
}
