import type { Row } from '../runner.js'
import { textIn } from '../sql/read-columns.js'

/** What a server and its settings must be, as text columns. For servers that pass `foreignServer`. */
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

/** What names the server. Every server that speaks like Postgres answers it. */
export const SERVER_NAME = `select version() as version,
  current_setting('server_version_num') as number`

const OLDEST_NUMBER = 140_000
const OLDEST = 14

/** Servers that speak like Postgres; their advisory locks are missing or local to a node. */
const RELATIVES: readonly (readonly [RegExp, string])[] = [
  [/^CockroachDB/i, 'CockroachDB'],
  [/-YB-|Yugabyte/i, 'YugabyteDB'],
]

/** What is wrong with the server's kind or age. */
export function foreignServer(row: Row): readonly string[] {
  const version = textIn(row, 'version') ?? ''
  const relative = RELATIVES.find(([pattern]) => pattern.test(version))
  if (relative) return [`the server is ${relative[1]}, whose advisory locks do not hold everywhere`]
  return Number(textIn(row, 'number')) >= OLDEST_NUMBER
    ? []
    : [`the server is older than Postgres ${OLDEST}`]
}

/** What is found of a server: `faults` say that it must not be used, `warnings` what it may lose. */
export interface Findings {
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

/** What the answer to `SERVER_FACTS` says. */
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

/** Whether some standby is not waited for. Of one that no right shows, the settings must tell. */
function isAsynchronous(row: Row): boolean {
  const standbys = Number(textIn(row, 'standbys'))
  if (standbys === 0) return false
  return textIn(row, 'flush') === 'local' || Number(textIn(row, 'awaited')) < standbys
}
