import type { Row } from '../runner.js'
import { textIn } from '../sql/read-columns.js'

/** SQL for the state and the settings of the server, as text columns. For servers that pass `foreignServer`. */
export const SERVER_FACTS = `select
  pg_catalog.pg_is_in_recovery()::text as standby,
  pg_catalog.current_setting('transaction_read_only') as readonly,
  pg_catalog.current_setting('synchronous_commit') as flush,
  (select count(*) from pg_catalog.pg_extension where extname = 'citus')::text as citus,
  (select count(*) from pg_catalog.pg_stat_replication
    where sync_state is null or state is distinct from 'backup')::text as standbys,
  (select count(*) from pg_catalog.pg_stat_replication
    where sync_state in ('sync', 'quorum', 'potential')
      or sync_state is null and pg_catalog.current_setting('synchronous_standby_names') <> ''
  )::text as awaited`

/** SQL that identifies the server. Every server with the protocol of Postgres answers it. */
export const SERVER_NAME = `select version() as version,
  current_setting('server_version_num') as number`

const OLDEST_NUMBER = 140_000
const OLDEST = 14

/** Servers with the protocol of Postgres whose advisory locks are missing, or local to a node. */
const RELATIVES: readonly (readonly [RegExp, string])[] = [
  [/^CockroachDB/i, 'CockroachDB'],
  [/-YB-|Yugabyte/i, 'YugabyteDB'],
]

/** Returns the faults in the server's kind or version. */
export function foreignServer(row: Row): readonly string[] {
  const version = textIn(row, 'version') ?? ''
  const relative = RELATIVES.find(([pattern]) => pattern.test(version))
  if (relative) return [`the server is ${relative[1]}, whose advisory locks do not hold everywhere`]
  return Number(textIn(row, 'number')) >= OLDEST_NUMBER
    ? []
    : [`the server is older than Postgres ${OLDEST}`]
}

/** `faults` are reasons not to use a server; `warnings` name what it may lose. */
export interface Findings {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

/** Evaluates the row of `SERVER_FACTS`. */
export function serverFindings(row: Row): Findings & { readonly takesWrites: boolean } {
  const faults: string[] = []
  const isStandby = textIn(row, 'standby') === 'true'
  const takesWrites = !isStandby && textIn(row, 'readonly') === 'off'
  if (textIn(row, 'citus') !== '0') {
    faults.push('the database is one of Citus, whose advisory locks are local to a node')
  }
  if (isStandby) faults.push('the server is a standby: it is read-only')
  else if (!takesWrites) faults.push('transactions are read-only')
  if (textIn(row, 'flush') === 'off') {
    faults.push('synchronous_commit is off: a crash takes writes that were acknowledged')
  }
  return { faults, takesWrites, warnings: isAsynchronous(row) ? [ASYNCHRONOUS] : [] }
}

const ASYNCHRONOUS =
  'a standby is asynchronous: a failover to it takes writes that were acknowledged, with their records'

/**
 * Whether COMMIT does not wait for some standby. If the role may not see the state of a standby, the settings decide.
 */
function isAsynchronous(row: Row): boolean {
  const standbys = Number(textIn(row, 'standbys'))
  if (standbys === 0) return false
  return textIn(row, 'flush') === 'local' || Number(textIn(row, 'awaited')) < standbys
}
