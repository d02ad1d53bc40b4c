import { HERE, type Place } from '../process/place.js'
import { until } from '../until.js'
import { type RedisConfig, type RedisServer, startRedis, startServer } from './redis.js'
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

interface SentinelOptions {
  /** Of the primary and the replicas. */
  readonly config?: RedisConfig
  /** Of the three sentinels, the primary and its replicas; by default three and three, all here. */
  readonly places?: readonly Place[]
  /** How long a server may be silent. */
  readonly downAfterMs?: number
}

/** Starts a primary with two replicas, and three sentinels that watch them and know each other. */
export async function startSentinel({
  config = {},
  places = Array<Place>(SENTINELS + 3).fill(HERE),
  downAfterMs = PATIENCE_MS,
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
