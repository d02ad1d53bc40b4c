import { until } from '../until.js'
import { type RedisServer, startRedis, startServer } from './redis.js'
import { startReplica } from './redis-replica.js'

export interface RedisSentinels {
  /** The name under which the sentinels know the primary. */
  readonly name: string
  /** What a client connects to: all three. */
  readonly sentinels: readonly { host: string; port: number }[]
  /** The primary at the start; after a failover it may be a replica. */
  readonly primary: RedisServer
  readonly replicas: readonly RedisServer[]
  /** Kills the primary; a replica takes its place soon after. */
  killPrimary(): Promise<void>
  stop(): Promise<void>
}

const NAME = 'orders'
const SENTINELS = 3
const QUORUM = 2
/** So patient are the sentinels until the primary is killed: a busy machine is no failure. */
const PATIENCE_MS = 60_000
const DOWN_AFTER_MS = 1000

/** Starts a primary with two replicas, and three sentinels that watch them and know each other. */
export async function startSentinel(): Promise<RedisSentinels> {
  const primary = await startRedis()
  const replicas = await Promise.all([startReplica(primary), startReplica(primary)])
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, () => startOneSentinel(primary)),
  )
  const stop = async (): Promise<void> => {
    // The watchers first, so that they do not see a failure.
    await Promise.all(sentinels.map((sentinel) => sentinel.stop()))
    await Promise.all([primary, ...replicas].map((server) => server.stop()))
  }
  try {
    await Promise.all(sentinels.map((sentinel) => untilItSees(sentinel, replicas.length)))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    name: NAME,
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    primary,
    replicas,
    async killPrimary() {
      await primary.kill()
      const setting = ['down-after-milliseconds', String(DOWN_AFTER_MS)]
      await Promise.all(sentinels.map((each) => each.command('SENTINEL', 'SET', NAME, ...setting)))
    },
    stop,
  }
}

function startOneSentinel(primary: RedisServer): Promise<RedisServer> {
  return startServer({
    extraArguments: ['--sentinel'],
    readyLine: '+monitor',
    config: {
      sentinel: [
        `monitor ${NAME} ${primary.host} ${primary.port} ${QUORUM}`,
        `down-after-milliseconds ${NAME} ${PATIENCE_MS}`,
        `failover-timeout ${NAME} 5000`,
      ],
    },
  })
}

async function untilItSees(sentinel: RedisServer, replicas: number): Promise<void> {
  const line = new RegExp(`status=ok,address=[^,]+,slaves=${replicas},sentinels=${SENTINELS}`)
  await until(`the sentinel on port ${sentinel.port} sees everybody`, async () => {
    return line.test(await sentinel.command('INFO', 'sentinel'))
  })
}
