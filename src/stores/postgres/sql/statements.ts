import type { Row, Statement } from '../runner.js'
import { createBeginStatements } from './begin-statements.js'
import { lockLiteral, quotedSchema, settingLiteral, timeFromNow, uuidLiteral } from './literals.js'
import { textIn } from './read-columns.js'
import type { TokenIds } from './record-ids.js'
import { createRecordStatements } from './record-statements.js'

/** All statements that the store uses while it serves requests. */
export type Statements = ReturnType<typeof createStatements>

export const createStatements = (schema: string) => ({
  ...createBeginStatements(schema),
  ...createRecordStatements(schema),
  ...createTokenStatements(schema),
})

/** The statements on the table of used tokens. */
function createTokenStatements(schema: string) {
  const table = `${quotedSchema(schema)}.used_token`
  const insert = `insert into ${table} (id, expires_at) select `
  return {
    /**
     * Records a token, unless it is recorded or another transaction is recording it. Runs outside or
     * inside a transaction, and never waits for another transaction.
     */
    consume: ({ id, lock }: TokenIds, ttlMs: number): Statement => ({
      // The holder of the lock has recorded the token, but may not have committed yet: an insert would wait.
      text:
        `${insert}${uuidLiteral(id)}, ${timeFromNow(ttlMs)} ` +
        `where pg_catalog.pg_try_advisory_xact_lock(${lockLiteral(lock)}) ` +
        "on conflict do nothing returning 'yes' as consumed",
      values: [],
    }),
    /**
     * Records a token after the end of a transaction that is recording it; runs outside a transaction.
     * Fails with 55P03 after `waitMs`.
     */
    consumeAfterRollback: (
      { id }: TokenIds,
      { ttlMs, waitMs }: { readonly ttlMs: number; readonly waitMs: number },
    ): Statement => ({
      text:
        `${insert}${uuidLiteral(id)}, ${timeFromNow(ttlMs)} ` +
        `where pg_catalog.set_config('lock_timeout', ${settingLiteral(waitMs)}, true) is not null ` +
        'on conflict do nothing',
      values: [],
    }),
    /** Whether `consume` recorded the token. */
    readConsumed: ([row]: readonly Row[]): boolean =>
      row !== undefined && textIn(row, 'consumed') === 'yes',
    /** Looks for a token that another transaction committed; runs outside a transaction. */
    findToken: ({ id }: TokenIds): Statement => ({
      text: `select 'yes' as used from ${table} where id OPERATOR(pg_catalog.=) ${uuidLiteral(id)}`,
      values: [],
    }),
    readTokenUse: ([row]: readonly Row[]): boolean =>
      row !== undefined && textIn(row, 'used') === 'yes',
  }
}
