import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { compileText } from '../../../support/process/compile.js'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { openStore, sharedRedis } from '../kit.js'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const EXIT_TIMEOUT_MS = 50_000
/** ioredis waits for a sentinel's answer, and then two seconds for the end of its connection. */
const SENTINEL_MS = 5000

const server = await sharedRedis()

interface Program {
  /** The package's name, by default that of ioredis 6. */
  readonly ioredis?: string
  /** Makes the user's client. */
  readonly client: string
  readonly body: string
}

/**
 * Runs a program that is given `store`, and closes it and the user's client when its body is done.
 * Resolves with what it prints, and how long it then waited, rather than worked, until it ended.
 */
async function runProgram({
  ioredis = 'ioredis',
  client,
  body,
}: Program): Promise<{ output: string; ms: number }> {
  const program = `
    import { Cluster, Redis } from '${ioredis}'
    import { redisStore } from 'express-service-auth/redis'
    const redis = ${client}
    redis.on('error', () => {})
    const store = redisStore(redis)
    ${body}
    store.close()
    redis.disconnect()
    const { idle } = performance.eventLoopUtilization()
    process.on('exit', (code) =>
      console.log('exit', code, performance.eventLoopUtilization().idle - idle))`
  const args = [await compileText(program)]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: ROOT, timeout: EXIT_TIMEOUT_MS }, (error, stdout) => {
      const ms = Number(/exit 0 ([\d.]+)/.exec(stdout)?.[1])
      if (error) reject(new Error(`it did not end well: ${stdout}`, { cause: error }))
      else resolve({ output: stdout, ms })
    })
  })
}

// What ends at once with every library: clients/process.test.ts.
describe('a process that closes the store', () => {
  let hanging: RedisServer
  beforeAll(async () => {
    hanging = await startRedis()
    hanging.pause()
    return () => hanging.stop()
  })

  it.concurrent.each(['ioredis', 'ioredis5'])(
    'ends when a sentinel says nothing, on %s',
    async (ioredis) => {
      const { output, ms } = await runProgram({
        ioredis,
        client: `new Redis({ sentinels: [{ port: ${hanging.port} }], name: 'orders', lazyConnect: true })`,
        body: `await store.check().catch((error) => console.log(error.message))`,
      })
      expect(output).toContain('unreachable')
      expect(ms).toBeLessThan(SENTINEL_MS)
    },
  )
})

it('commands of one turn leave together', async () => {
  const chunks: Buffer[] = []
  const front = createServer((client) => {
    const inner = connect(server.port, server.host)
    client.on('data', (chunk) => chunks.push(chunk))
    pipeline(client, inner, client, () => {})
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  onTestFinished(() => void front.close())
  const { port } = front.address() as AddressInfo
  const { store } = openStore({ host: '127.0.0.1', port })
  const consumeMany = () =>
    Promise.all(Array.from({ length: 50 }, () => store.consume(randomUUID(), 1000)))
  await consumeMany()
  await consumeMany()
  chunks.length = 0
  await consumeMany()
  expect(chunks).toHaveLength(1)
})
