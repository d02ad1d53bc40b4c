import { awaitAnswer, ROLLBACK_MS } from '../runner.js'
import { READ_ONLY_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'

/** A single text, because a library may give the connection to another request after the rollback. */
const TERMINATE = 'rollback; select pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())'

/** Whether the server is a standby, or has become read-only, so that a pool must not keep its connection. */
export const isReadOnly = (error: unknown): boolean =>
  sqlStateOf(error) === READ_ONLY_SQL_TRANSACTION

/**
 * Makes a read-only server end the connection on which it answered with this error, so that the
 * library's pool drops it. The libraries have no other way in common. Never rejects.
 */
export async function dropIfReadOnly(
  error: unknown,
  send: (text: string) => PromiseLike<unknown>,
): Promise<void> {
  if (!isReadOnly(error)) return
  const ended = (async () => send(TERMINATE))()
  await awaitAnswer(ROLLBACK_MS, ended).catch(() => {})
}
