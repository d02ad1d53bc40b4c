import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setImmediate as nextTick } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openLink } from '../../../src/stores/redis/link.js'
import { script } from '../../../src/stores/redis/script.js'
import { type RedisServer, startRedis } from '../../support/redis.js'
import { startCluster } from '../../support/redis-cluster.js'
import { openStore } from './kit.js'

const SOURCE = new URL('../../../src/stores/redis/index.ts', import.meta.url)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const EXIT_TIMEOUT_MS = 15_000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  return () => server.stop()
})

/** Runs a program that is given `redis` and `store`; resolves with what it prints when it ends. */
function runProgram(client: string, body: string): Promise<{ output: string; ms: number }> {
  const program = `
    import { Cluster, Redis } from 'ioredis'
    import { redisStore } from ${JSON.stringify(SOURCE.href)}
    const redis = ${client}
    redis.on('error', () => {})
    const store = redisStore(redis, { replicas: undefined })
    const startedAt = Date.now()
    process.on('exit', (code) => console.log('exit', code, Date.now() - startedAt))
    ${body}`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: ROOT, timeout: EXIT_TIMEOUT_MS }, (error, stdout) => {
      const ms = Number(/exit \d+ (\d+)/.exec(stdout)?.[1])
      if (error?.killed) reject(new Error(`it did not end: ${stdout}`))
      else resolve({ output: stdout, ms })
    })
  })
}

const single = (port: number, lazyConnect = false) =>
  `new Redis({ port: ${port}, lazyConnect: ${lazyConnect} })`

describe('a process that uses the store', () => {
  test('ends when the user’s client ends', async () => {
    const { output, ms } = await runProgram(
      single(server.port),
      `console.log(await store.consume('${randomUUID()}', 1000)); await redis.quit()`,
    )
    expect(output).toContain('true')
    expect(output).toContain('exit 0')
    expect(ms).toBeLessThan(1500)
  })

  test('is held open by nobody but those who wait for an answer', async () => {
    const { output } = await runProgram(
      single(server.port, true),
      `await store.check(); console.log(await store.consume('${randomUUID()}', 1000))`,
    )
    expect(output).toContain('true')
    expect(output).toContain('exit 0')
  })

  test('learns that Redis is down, and ends', async () => {
    const { output } = await runProgram(
      single(1, true),
      `await store.check().catch((error) => console.log(error.message))`,
    )
    expect(output).toContain('ECONNREFUSED')
    expect(output).toContain('exit 0')
  })

  test('ends while Redis hangs and a reservation is to be taken back', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    redis.pause()
    const request = JSON.stringify({ key: 'k', owner: 'o', fingerprint: 'f', leaseMs: 9e5 })
    const { output } = await runProgram(
      single(redis.port, true),
      `await store.reserve(${request}).catch((error) => console.log(error.message))`,
    )
    expect(output).toContain('Redis')
    expect(output).toContain('exit 0')
  })

  test('ends when the user’s client of a cluster ends', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const { output } = await runProgram(
      `new Cluster(${JSON.stringify(cluster.startupNodes)})`,
      `for (;;) {
        const first = await store.consume('${randomUUID()}', 1000).catch(() => undefined)
        if (first !== undefined) { console.log(first); break }
      }
      await redis.quit()`,
    )
    expect(output).toContain('true')
    expect(output).toContain('exit 0')
  })
})

describe('an outage', () => {
  test('leaves nothing in memory of those who gave up', async () => {
    const redis = await startRedis()
    await redis.stop()
    const { store } = openStore(redis, { timeoutMs: 1 })
    const wave = () =>
      Promise.allSettled(Array.from({ length: 2000 }, () => store.consume(randomUUID(), 1000)))
    for (let n = 0; n < 5; n++) await wave()
    const warned = vi.spyOn(process, 'emitWarning')
    const before = heapUsed()
    for (let n = 0; n < 20; n++) await wave()
    expect(heapUsed() - before).toBeLessThan(3_000_000)
    expect(warned).not.toHaveBeenCalled()
  })
})

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

describe('commands of one tick', () => {
  test.each([
    [32, 1],
    [33, 2],
    [70, 3],
  ])('leave together, many of them in parts (%i)', async (count, parts) => {
    const client = new Redis({ port: server.port })
    onTestFinished(() => client.disconnect())
    await once(client, 'ready')
    const { stream } = client as unknown as { stream: Socket }
    const uncork = vi.spyOn(stream, 'uncork')
    const link = openLink(client)
    const echo = script('return ARGV[1]')
    await client.script('LOAD', echo.source)
    uncork.mockClear()
    const replies = Array.from({ length: count }, (_, index) =>
      link.evaluateKnown({ script: echo, key: 'k', args: [String(index)] }),
    )
    expect(uncork).toHaveBeenCalledTimes(parts - 1)
    expect((await Promise.all(replies)).map(String)).toEqual(replies.map((_, index) => `${index}`))
    expect(uncork).toHaveBeenCalledTimes(parts)
    expect(stream.writableCorked).toBe(0)
  })

  test('leave on the connection that there is, also where another was there before', async () => {
    const [first, second] = [new PassThrough(), new PassThrough()]
    const client = { on() {}, stream: first, evalshaBuffer: async () => 'OK' }
    const link = openLink(client as unknown as Redis)
    const call = { script: script('return 1'), key: 'k', args: [] }
    const corked = () => [first.writableCorked, second.writableCorked]
    await link.evaluateKnown(call)
    expect(corked()).toEqual([1, 0])
    client.stream = second
    for (let sent = 0; sent < 40; sent += 1) await link.evaluateKnown(call)
    expect(corked()).toEqual([1, 1])
    client.stream = first
    await link.evaluateKnown(call)
    expect(corked()).toEqual([2, 1])
    await nextTick()
    expect(corked()).toEqual([0, 0])
  })
})
