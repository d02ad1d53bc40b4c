import { createOpeningStatements, type OpeningStatements } from './begin-statements.js'
import { createRecordStatements, type RecordStatements } from './record-statements.js'
import { createTokenStatements, type TokenStatements } from './token-statements.js'

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
