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
/** ioredis waits for a sentinel's answer, and then two seconds for the end of its connection. */
const SENTINEL_MS = 5000

let hanging: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  hanging = await startRedis()
  hanging.pause()
  cluster = await startCluster()
  return () => Promise.all([hanging.stop(), cluster.stop()])
})

const [REACHED, UNREACHED] = [
  [true, true],
  [false, false],
]

/** What the stores and denylists of a process reached, and how long it then waited until it ended. */
async function run(library: string, ports: Record<string, number | undefined>) {
  const command = [child, library, JSON.stringify(ports)]
  const { stdout } = await promisify(execFile)(process.execPath, command, { timeout: 50_000 })
  const [used = '', idleMs] = stdout.split('\n')
  return { used: JSON.parse(used), idleMs: Number(idleMs) }
}

it.each(['ioredis', 'ioredis5', 'redis', 'redis5', 'iovalkey', 'iovalkey03'])(
  'a process ends once its stores and denylists are closed, with %s',
  async (library) => {
    const ports = { serving: server.port, refusing: 1, hanging: hanging.port }
    const { used, idleMs } = await run(library, { ...ports, cluster: cluster.masters[0]?.port })
    expect(used).toEqual({
      serving: REACHED,
      refusing: UNREACHED,
      hanging: UNREACHED,
      cluster: REACHED,
    })
    expect(idleMs).toBeLessThan(AT_ONCE_MS)
  },
)

it.each(['ioredis', 'ioredis5'])(
  'it ends when a sentinel says nothing, with %s',
  async (library) => {
    const { used, idleMs } = await run(library, { sentinel: hanging.port })
    expect(used).toEqual({ sentinel: UNREACHED })
    expect(idleMs).toBeLessThan(SENTINEL_MS)
  },
)
