import { migration } from 'express-service-auth/postgres'
import { startPostgres } from '../support/postgres/postgres.js'
import { postgresAddress } from '../support/postgres/postgres-address.js'
import type { Place } from '../support/process/place.js'
import { until } from '../support/until.js'
import { pickOne } from './commotion.js'
import { faultsOfServers, type Scene, type SceneOptions } from './scene.js'
import type { Row } from './table.js'

const EFFECTS = 'create table effect (key text not null, effect text not null, at bigint not null)'
/** Where the primary is reached, whichever server that is. */
const ADDRESS = '10.77.0.2'
const STANDBY = 'standby'
const SETTINGS = {
  fsync: 'on',
  autovacuum_naptime: '5s',
  cluster_name: STANDBY,
  wal_keep_size: '512MB',
  wal_sender_timeout: '3s',
  wal_receiver_timeout: '3s',
  wal_retrieve_retry_interval: '500ms',
  // A receiver that is gone does not keep its transaction for long.
  tcp_keepalives_idle: '2',
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '5000',
}
const IN_STEP = `
  select from pg_stat_replication
  where state = 'streaming' and sync_state = $1
    and pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn) < 1e5`
const LEFTOVERS = `
  select 1 from service_auth.idempotency where expires_at < now() - interval '60 s'
  union all
  select 1 from pg_stat_all_tables
  where relid = 'service_auth.idempotency'::regclass and n_dead_tup > 0.1 * n_live_tup`

/** A primary, and a standby that has each commit before it is acknowledged. */
export async function openPostgres({ network, hasReplicas }: SceneOptions): Promise<Scene> {
  const places = await network.addPlaces(2)
  const [first, second] = places as [Place, Place]
  const start = async (place: Place, follows = {}) => ({
    server: await startPostgres({ settings: SETTINGS, place, ...follows }),
    place,
  })
  let primary = await start(first)
  const { port, query } = primary.server
  await query(migration())
  await query(EFFECTS)
  if (hasReplicas) {
    await query(`alter system set synchronous_standby_names = '${STANDBY}'`)
    await query('select pg_reload_conf()')
  }
  const follow = (place: Place) =>
    start(place, { standbyOf: primary.server, ...(network.hasPartitions && { port }) })
  let standby = await follow(second)
  if (network.hasPartitions) await network.moveAddress(ADDRESS, first)
  const address = postgresAddress(port, network.hasPartitions ? ADDRESS : first.host)

  /** As whoever looks after the servers would do it. */
  async function failOver(): Promise<void> {
    const lost = primary
    await lost.server.kill()
    await standby.server.query('select pg_promote()')
    primary = standby
    await network.moveAddress(ADDRESS, primary.place)
    await lost.server.stop()
    standby = await follow(lost.place)
  }

  return {
    settings: { nodes: [], databaseUrl: address.url },
    places,
    faults: {
      ...faultsOfServers(() => pickOne([primary, standby]).server),
      ...(network.hasPartitions && { 'standby promoted': failOver }),
    },
    shards: {
      async database() {
        const { server } = primary
        const found = await server.query(IN_STEP, [hasReplicas ? 'sync' : 'async'])
        return found.length === 1 ? { server } : undefined
      },
    },
    shardOf: () => 'database',
    readTable: () =>
      primary.server.query<Pick<Row, keyof Row>>(
        'select key, effect, at::float8 as at from effect order by at',
      ),
    async check() {
      // A standby that was promoted counts its rows from zero.
      await primary.server.query('analyze service_auth.idempotency')
      const isTidy = async () => (await primary.server.query(LEFTOVERS)).length === 0
      return until('the sweeps and vacuum', isTidy).then(
        () => [],
        () => ['expired or dead records remain'],
      )
    },
    async stop() {
      for (const { server } of [standby, primary]) await server.stop()
    },
  }
}
