import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import type { Work } from '../migration-context.js'

/**
 * The identity of a row that a call of this run must have staged, and that no entry names. None for
 * the rows of others: whatever was there before, or is of an identity that was never sent.
 */
export function ownRowOf({ survey, ledger }: Work, row: StagedRow): number | undefined {
  const { state } = ledger
  if (state.foreignRows.has(row.id) || state.rows.has(row.id)) return undefined
  const externalUserId = externalUserIdOf(row)
  if (externalUserId === undefined) return undefined
  const ordinal = survey.ordinalOf(externalUserId)
  return ordinal !== undefined && state.sentOnce[ordinal] === 1 ? ordinal : undefined
}
