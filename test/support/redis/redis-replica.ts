import { until } from '../until.js'
import { type RedisOptions, type RedisServer, startRedis } from './redis.js'

/** Starts a replica of a server; resolves as `untilInStep` does. */
export async function startReplica(
  primary: RedisServer,
  options: RedisOptions = {},
): Promise<RedisServer> {
  const replicaof = `${primary.host} ${primary.port}`
  const replica = await startRedis({ ...options, config: { ...options.config, replicaof } })
  await untilInStep(replica)
  return replica
}

/** Resolves when the replica's link to its primary is up and its first copy is complete. */
export async function untilInStep(replica: RedisServer): Promise<void> {
  await until(`the replica on port ${replica.port} is in step`, async () => {
    const state = await replica.command('INFO', 'replication')
    return state.includes('master_link_status:up')
  })
}

/**
 * Whether the server is a primary; false if its connection breaks. Sentinels cut all connections to a server
 * whose role they change, so the caller has to ask again.
 */
export const isPrimary = (server: RedisServer): Promise<boolean> =>
  server.command('INFO', 'replication').then(
    (state) => state.includes('role:master'),
    () => false,
  )
