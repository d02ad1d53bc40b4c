import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort, LOAD_CORE, spawnPinned } from './processes.js'

const HOW_TO_GET_IT =
  'no redis-server: install it (`apt-get install -y redis-server`), or name it in REDIS_SERVER'

/** Starts a Redis of the bench's own, in memory, on a free port. */
export async function startRedis() {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'bench-redis-'))
  const binary = process.env.REDIS_SERVER ?? 'redis-server'
  const inMemory = ['--save', '', '--appendonly', 'no']
  // The section `growth` fills it by `debug populate`.
  const args = [
    '--port',
    port,
    '--bind',
    '127.0.0.1',
    ...inMemory,
    '--enable-debug-command',
    'local',
  ]
  const child = spawnPinned(LOAD_CORE, binary, [...args.map(String), '--dir', folder], {
    stdio: 'ignore',
  })
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 })
  client.on('error', () => {})
  const failed = Promise.race([once(child, 'error'), once(child, 'exit')]).then(() => {
    throw new Error(HOW_TO_GET_IT)
  })
  failed.catch(() => {})
  await Promise.race([client.ping(), failed, sleep(10_000).then(() => failed)])
  return {
    url: `redis://127.0.0.1:${port}`,
    client,
    async stop() {
      client.disconnect()
      const ended = once(child, 'exit')
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
