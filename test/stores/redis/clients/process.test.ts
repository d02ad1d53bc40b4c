import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { compile } from '../../../support/process/compile.js'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { type RedisCluster, startCluster } from '../../../support/redis/redis-cluster.js'
import { sharedRedis } from '../kit.js'

const child = await compile(new URL('./process.child.ts', import.meta.url))
const server = await sharedRedis()
/** How long a process that nothing holds may wait for others, on a busy machine, until it ends. */
const AT_ONCE_MS = 1500

let hanging: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  hanging = await startRedis()
  hanging.pause()
  cluster = await startCluster()
  return () => Promise.all([hanging.stop(), cluster.stop()])
})

it.each(['ioredis', 'ioredis5', 'redis', 'redis5', 'iovalkey', 'iovalkey03'])(
  'a process ends once its stores and denylists are closed, with %s',
  async (library) => {
    const ports = [server.port, 1, hanging.port, cluster.masters[0]?.port]
    const command = [child, library, ...ports.map(String)]
    const { stdout } = await promisify(execFile)(process.execPath, command, { timeout: 30_000 })
    const [used, idleMs] = stdout.split('\n')
    expect(JSON.parse(used as string)).toEqual({
      serving: [true, true],
      refusing: [false, false],
      hanging: [false, false],
      cluster: [true, true],
    })
    expect(Number(idleMs)).toBeLessThan(AT_ONCE_MS)
  },
)
