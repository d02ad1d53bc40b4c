import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { compile } from '../../../support/process/compile.js'
import { until } from '../../../support/until.js'
import { ownRedis, proxyOf } from '../kit.js'

const child = await compile(new URL('./redis-denylist.child.ts', import.meta.url))

async function leave(state: string, port: number): Promise<string> {
  const command = [child, state, String(port)]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, command, {
    timeout: 15_000,
  })
  expect(stderr).toBe('')
  return stdout
}

it.each(['never used', 'at once', 'desk', 'ready', 'ioredis 5', 'cluster'])(
  'a denylist that is closed does not hold the process open: %s',
  async (state) => {
    const ofCluster = { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' }
    const server = await ownRedis(state === 'cluster' ? ofCluster : {})
    if (state === 'cluster') {
      await server.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      await until('the cluster is up', async () =>
        (await server.command('CLUSTER', 'INFO')).includes('cluster_state:ok'),
      )
    }
    expect(await leave(state, server.port)).toMatch(/left\n$/)
  },
)

it.each(['accepted and silent for good', 'refused'] as const)(
  'one whose server is unreachable says so before the process ends: %s',
  async (outage) => {
    const server = await ownRedis()
    const proxy = await proxyOf(server)
    await proxy.fail(outage)
    const told = 'ServiceAuthError\nServiceAuthError\nleft\n'
    expect(await leave('unreachable', proxy.port)).toBe(told)
  },
)
