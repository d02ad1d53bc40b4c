import { HERE, type Place } from '../process/place.js'
import { until } from '../until.js'
import { type RedisConfig, type RedisServer, startRedis } from './redis.js'
import { untilInStep } from './redis-replica.js'

export interface RedisCluster {
  /** The addresses of all six nodes, for clients. */
  readonly startupNodes: readonly { host: string; port: number }[]
  /** Each has a third of the slots, in this order. */
  readonly masters: readonly RedisServer[]
  /** The replicas, in the order of their masters. */
  readonly replicas: readonly RedisServer[]
  stop(): Promise<void>
}

const SLOTS = 16_384
const MASTERS = 3
const NODES = 2 * MASTERS

const CLUSTER_CONFIG: RedisConfig = {
  'cluster-enabled': 'yes',
  'cluster-node-timeout': '2000',
  'cluster-replica-validity-factor': '0',
}

interface ClusterOptions {
  readonly config?: RedisConfig
  /** The places of the masters, then of the replicas. Default: `HERE`. */
  readonly places?: readonly Place[]
}

/** Starts three masters with a replica each; resolves when all six agree that the cluster is up. */
export async function startCluster({
  places = Array<Place>(NODES).fill(HERE),
  ...options
}: ClusterOptions = {}): Promise<RedisCluster> {
  const config = { ...CLUSTER_CONFIG, ...options.config }
  const nodes = await Promise.all(places.map((place) => startRedis({ config, place })))
  const masters = nodes.slice(0, MASTERS)
  const replicas = nodes.slice(MASTERS)
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    await Promise.all(masters.map(assignSlots))
    await introduce(nodes)
    await Promise.all(replicas.map((replica, index) => follow(replica, masters[index])))
    await Promise.all(nodes.map((node) => untilInfo(node, 'cluster_state:ok')))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    startupNodes: nodes.map(({ host, port }) => ({ host, port })),
    masters,
    replicas,
    stop,
  }
}

async function assignSlots(master: RedisServer, index: number): Promise<void> {
  const first = Math.floor((SLOTS * index) / MASTERS)
  const last = Math.floor((SLOTS * (index + 1)) / MASTERS) - 1
  await master.command('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last))
  await master.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
}

async function introduce([first, ...others]: RedisServer[]): Promise<void> {
  if (first === undefined) return
  for (const node of others) {
    await node.command('CLUSTER', 'MEET', first.host, String(first.port))
  }
  const nodes = [first, ...others]
  await Promise.all(nodes.map((node) => untilInfo(node, `cluster_known_nodes:${NODES}`)))
}

async function follow(replica: RedisServer, master: RedisServer | undefined): Promise<void> {
  if (master === undefined) return
  const id = await master.command('CLUSTER', 'MYID')
  await replica.command('CLUSTER', 'REPLICATE', id)
  await untilInStep(replica)
}

async function untilInfo(node: RedisServer, line: string): Promise<void> {
  await until(`${line} on port ${node.port}`, async () =>
    (await node.command('CLUSTER', 'INFO')).includes(line),
  )
}
