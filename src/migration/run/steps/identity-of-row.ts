import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import type { Work } from '../migration-context.js'

/**
 * Returns the identity of a row of this run that is not journaled yet. Returns `undefined` for rows that
 * existed before the run, and for rows of identities that it never sent.
 */
export function ownRowOf({ survey, ledger }: Work, row: StagedRow): number | undefined {
  const { state } = ledger
  if (state.foreignRows.has(row.id) || state.rows.has(row.id)) return undefined
  const externalUserId = externalUserIdOf(row)
  if (externalUserId === undefined) return undefined
  const ordinal = survey.ordinalOf(externalUserId)
  return ordinal !== undefined && state.sentOnce[ordinal] === 1 ? ordinal : undefined
}
