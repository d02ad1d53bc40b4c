import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { slotOf } from '../../src/stores/redis/connection/group-commit.js'
import type { RedisServer } from '../support/redis/redis.js'
import { startCluster } from '../support/redis/redis-cluster.js'
import { startSentinel } from '../support/redis/redis-sentinel.js'
import { pickOne } from './commotion.js'
import { faultsOfServers, type Primary, type Scene, type SceneOptions } from './scene.js'
import type { Row } from './table.js'

const SLOTS = 16_384
const REPLICAS = { min: 1, timeoutMs: 250 }
const CONFIG = {
  appendonly: 'yes',
  appendfsync: 'always',
  'repl-timeout': '5',
  'repl-ping-replica-period': '1',
}
const SENTINELS = 3
const DOWN_AFTER_MS = 2000

interface Topology extends Pick<Scene, 'places' | 'stop'> {
  readonly settings: Pick<Scene['settings'], 'nodes' | 'sentinelName'>
  /** Of each shard its two servers. */
  readonly pairs: readonly (readonly RedisServer[])[]
}

/** Three masters with a replica each. */
export async function openCluster(options: SceneOptions): Promise<Scene> {
  const places = await options.network.addPlaces(6)
  const config = { ...CONFIG, 'cluster-require-full-coverage': 'no' }
  const { masters, replicas, startupNodes, stop } = await startCluster({ config, places })
  const pairs = masters.map((master, index) => [master, ...replicas.slice(index, index + 1)])
  return openScene({ settings: { nodes: startupNodes }, pairs, places, stop }, options)
}

/** A primary with one replica, and three sentinels. */
export async function openSentinel(options: SceneOptions): Promise<Scene> {
  const places = await options.network.addPlaces(SENTINELS + 2)
  const started = await startSentinel({ config: CONFIG, places, downAfterMs: DOWN_AFTER_MS })
  const { name, sentinels, primary, replicas, stop } = started
  const settings = { nodes: sentinels, sentinelName: name }
  return openScene({ settings, pairs: [[primary, ...replicas]], places, stop }, options)
}

async function openScene(
  { settings, pairs, ...rest }: Topology,
  { hasReplicas, folder }: SceneOptions,
): Promise<Scene> {
  const file = join(folder, 'table')
  await writeFile(file, '')
  const nameOf = (index: number): string => `shard ${index + 1}`
  return {
    ...rest,
    settings: { ...settings, ...(hasReplicas && { replicas: REPLICAS }), tableFile: file },
    faults: faultsOfServers(() => pickOne(pairs.flat())),
    shards: Object.fromEntries(
      pairs.map((servers, index) => [nameOf(index), () => primaryInStep(servers)]),
    ),
    shardOf(record) {
      const slot = slotOf(`esa:k:${record}`)
      return nameOf(Math.floor(((slot + 1) * pairs.length - 1) / SLOTS))
    },
    async readTable() {
      const rows: Row[] = []
      for await (const line of createInterface({ input: createReadStream(file) })) {
        const [key = '', effect = '', at] = line.split(' ')
        rows.push({ key, effect, at: Number(at) })
      }
      return rows
    },
    check: async () => [],
  }
}

/** The primary of the pair, if its replica has all that it has, also on disk. */
async function primaryInStep(servers: readonly RedisServer[]): Promise<Primary | undefined> {
  const states = await Promise.all(
    servers.map(async (server) => {
      const sections = ['replication', 'persistence'].map((name) => server.command('INFO', name))
      return { server, text: (await Promise.all(sections)).join('') }
    }),
  )
  const withLines = (...lines: readonly string[]) =>
    states.filter(({ text }) => lines.every((line) => text.includes(line)))
  const onDisk = withLines('loading:0', 'aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0')
  const [primary, ...others] = withLines('role:master')
  const isWhole =
    onDisk.length === servers.length &&
    others.length === 0 &&
    withLines('role:master', 'state=online').length === 1 &&
    withLines('master_link_status:up').length === 1
  if (!isWhole || primary === undefined) return undefined
  // A promoted replica has a new replication id, and that of the primary before. A restarted server has no second id.
  const [, promotion, previous = ''] =
    /^master_replid:(\S+)\s+master_replid2:(\S+)/m.exec(primary.text) ?? []
  return { server: primary.server, promotion: /[^0]/.test(previous) ? promotion : undefined }
}
