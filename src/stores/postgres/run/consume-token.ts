import { tokenIds } from '../sql/record-ids.js'
import { sqlStateOf } from '../sql-state.js'
import { ask, type Place } from '../store-context.js'
import type { LiveRun, UsedToken } from './live-runs.js'

const SERIALIZATION_FAILURE = '40001'

/** Uses a token up inside a run's transaction: `false` when it is used, or being used by another. */
export async function consumeWithin<Tx>(
  place: Place<Tx>,
  { tx, usedTokens, noteFailure }: LiveRun<Tx>,
  token: UsedToken,
): Promise<boolean> {
  const { runner, statements, schema } = place
  const ids = tokenIds(token.id, schema)
  const { text, values } = statements.consume(ids, token.ttlMs)
  // Whatever ends the run from here on, the token has been tried.
  usedTokens.push(token)
  let isFirst: boolean
  try {
    isFirst = statements.readConsumed(await runner.query(tx, text, values))
  } catch (error) {
    noteFailure(error)
    // Where the transaction looks at an older state, another's use of the token shows so. So does
    // any other conflict of a serializable transaction, which says nothing of the token.
    if (sqlStateOf(error) !== SERIALIZATION_FAILURE) throw error
    if (!statements.readUsed(await ask(place, statements.findToken(ids)))) throw error
    isFirst = false
  }
  if (!isFirst) usedTokens.splice(usedTokens.indexOf(token), 1)
  return isFirst
}
