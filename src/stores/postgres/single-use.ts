import type { LiveRun, UsedToken } from './live-runs.js'
import type { Place } from './place.js'
import { tokenIds } from './record-ids.js'
import { sqlStateOf } from './sql-state.js'

const SERIALIZATION_FAILURE = '40001'

/** Uses a token up inside a run's transaction: `false` when it is used, or being used by another. */
export async function consumeWithin<Tx>(
  { runner, statements, schema }: Place<Tx>,
  { tx, usedTokens }: LiveRun<Tx>,
  token: UsedToken,
): Promise<boolean> {
  const { text, values } = statements.consume(tokenIds(token.id, schema), token.ttlMs)
  // Whatever ends the run from here on, the token has been tried.
  usedTokens.push(token)
  let isFirst: boolean
  try {
    isFirst = statements.readConsumed(await runner.query(tx, text, values))
  } catch (error) {
    // Where the transaction looks at an older state, another's use of the token shows so.
    if (sqlStateOf(error) !== SERIALIZATION_FAILURE) throw error
    isFirst = false
  }
  if (!isFirst) usedTokens.splice(usedTokens.indexOf(token), 1)
  return isFirst
}
