import { HERE, type Place } from '../process/place.js'
import { until } from '../until.js'
import { type RedisConfig, type RedisServer, startRedis, startServer } from './redis.js'
import { startReplica } from './redis-replica.js'

export interface RedisSentinels {
  /** The name under which the sentinels know the primary. */
  readonly name: string
  /** The addresses of the three sentinels, for clients. */
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
/** Until a test kills the primary. It is long, so that a busy machine causes no failover. */
const DEFAULT_DOWN_AFTER_MS = 60_000
const DOWN_AFTER_KILL_MS = 1000

interface SentinelOptions {
  /** The configuration of the primary and the replicas. */
  readonly config?: RedisConfig
  /** The places of the three sentinels, the primary and its replicas. Default: two replicas, all `HERE`. */
  readonly places?: readonly Place[]
  /** How long a server may be silent before the sentinels consider it down. */
  readonly downAfterMs?: number
}

/** Starts a primary with two replicas, and three sentinels that watch them and know each other. */
export async function startSentinel({
  config = {},
  places = Array<Place>(SENTINELS + 3).fill(HERE),
  downAfterMs = DEFAULT_DOWN_AFTER_MS,
}: SentinelOptions = {}): Promise<RedisSentinels> {
  const [placeOfPrimary = HERE, ...placesOfReplicas] = places.slice(SENTINELS)
  const primary = await startRedis({ config, place: placeOfPrimary })
  const replicas = await Promise.all(
    placesOfReplicas.map((place) => startReplica(primary, { config, place })),
  )
  const sentinels = await Promise.all(
    places.slice(0, SENTINELS).map((place) => startOneSentinel(primary, place, downAfterMs)),
  )
  const stop = async (): Promise<void> => {
    // The sentinels stop first, so that they see no failure.
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
      const setting = ['down-after-milliseconds', String(DOWN_AFTER_KILL_MS)]
      await Promise.all(sentinels.map((each) => each.command('SENTINEL', 'SET', NAME, ...setting)))
    },
    stop,
  }
}

function startOneSentinel(
  primary: RedisServer,
  place: Place,
  downAfterMs: number,
): Promise<RedisServer> {
  return startServer({
    place,
    extraArguments: ['--sentinel'],
    readyLine: '+monitor',
    config: {
      sentinel: [
        `monitor ${NAME} ${primary.host} ${primary.port} ${QUORUM}`,
        `down-after-milliseconds ${NAME} ${downAfterMs}`,
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
