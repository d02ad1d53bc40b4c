import type { Row, Statement } from '../runner.js'
import { createOpeningStatements, type OpeningStatements } from './begin-statements.js'
import { lockLiteral, momentIn, quotedSchema, settingLiteral, uuidLiteral } from './literals.js'
import { textIn } from './read-columns.js'
import type { TokenIds } from './record-ids.js'
import { createRecordStatements, type RecordStatements } from './record-statements.js'

/** All that is asked of the database while requests are served. */
export type Statements = OpeningStatements & RecordStatements & TokenStatements

export function createStatements(schema: string): Statements {
  return {
    ...createOpeningStatements(schema),
    ...createRecordStatements(schema),
    ...createTokenStatements(schema),
  }
}

export type { Opened } from './begin-statements.js'
export type { KeptRecord } from './record-statements.js'
export { isEndedByHandler } from './transaction-ended.js'

/** What is asked of the table of used tokens. */
interface TokenStatements {
  /**
   * Records a token unless it is recorded, or is being recorded; by a statement of its own or inside a
   * transaction. It never waits for another.
   */
  consume(token: TokenIds, ttlMs: number): Statement
  /**
   * Records a token once no transaction is recording it any more; by a statement of its own. Fails with
   * 55P03 after `waitMs`.
   */
  useUp(token: TokenIds, options: { readonly ttlMs: number; readonly waitMs: number }): Statement
  /** Whether `consume` has recorded it. */
  readConsumed(rows: readonly Row[]): boolean
  /** Looks for what others have committed; in no transaction. */
  findToken(token: TokenIds): Statement
  readUsed(rows: readonly Row[]): boolean
}

function createTokenStatements(schema: string): TokenStatements {
  const table = `${quotedSchema(schema)}.used_token`
  const insert = `insert into ${table} (id, expires_at) select `
  return {
    consume: ({ id, lock }, ttlMs) => ({
      // Who holds the lock has recorded it, and may not have committed yet: an insert would wait.
      text:
        `${insert}${uuidLiteral(id)}, ${momentIn(ttlMs)} ` +
        `where pg_catalog.pg_try_advisory_xact_lock(${lockLiteral(lock)}) ` +
        "on conflict do nothing returning 'yes' as consumed",
      values: [],
    }),
    useUp: ({ id }, { ttlMs, waitMs }) => ({
      text:
        `${insert}${uuidLiteral(id)}, ${momentIn(ttlMs)} ` +
        `where pg_catalog.set_config('lock_timeout', ${settingLiteral(waitMs)}, true) is not null ` +
        'on conflict do nothing',
      values: [],
    }),
    readConsumed: ([row]) => row !== undefined && textIn(row, 'consumed') === 'yes',
    findToken: ({ id }) => ({
      text: `select 'yes' as used from ${table} where id OPERATOR(pg_catalog.=) ${uuidLiteral(id)}`,
      values: [],
    }),
    readUsed: ([row]) => row !== undefined && textIn(row, 'used') === 'yes',
  }
}
