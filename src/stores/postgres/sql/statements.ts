import { createBeginStatements } from './begin-statements.js'
import { createRecordStatements } from './record-statements.js'

/** All statements that the store uses while it serves requests. */
export type Statements = ReturnType<typeof createStatements>

export const createStatements = (schema: string) => ({
  ...createBeginStatements(schema),
  ...createRecordStatements(schema),
})
