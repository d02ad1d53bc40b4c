import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../until.js'
import { startRedis } from './redis.js'
import { startCluster } from './redis-cluster.js'
import { isPrimary, startReplica } from './redis-replica.js'
import { startSentinel } from './redis-sentinel.js'

describe('startReplica', () => {
  it('starts a server that has what its primary has', async () => {
    const primary = await startRedis()
    onTestFinished(() => primary.stop())
    await primary.command('SET', 'key', 'value')
    const replica = await startReplica(primary)
    onTestFinished(() => replica.stop())
    expect(await replica.command('GET', 'key')).toBe('value')
    await expect(replica.command('SET', 'key', 'other')).rejects.toThrow(/READONLY/)
  })
})

describe('startCluster', () => {
  it('starts six nodes that serve all slots, and a replica takes over from its master', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const [master] = cluster.masters
    const [replica] = cluster.replicas
    expect(cluster.startupNodes).toHaveLength(6)
    expect(await master?.command('CLUSTER', 'INFO')).toContain('cluster_slots_ok:16384')
    await master?.kill()
    await until('the replica is a master', async () => replica !== undefined && isPrimary(replica))
  })
})

describe('startSentinel', () => {
  it('starts sentinels that make a replica the primary when the primary is gone', async () => {
    const setting = await startSentinel()
    onTestFinished(() => setting.stop())
    await setting.killPrimary()
    await until('a replica is the primary', async () =>
      (await Promise.all(setting.replicas.map(isPrimary))).includes(true),
    )
  })
})
