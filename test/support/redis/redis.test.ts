import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type RedisOptions, type RedisServer, startRedis } from './redis.js'

const started: RedisServer[] = []

async function start(options?: RedisOptions): Promise<RedisServer> {
  const redis = await startRedis(options)
  started.push(redis)
  return redis
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((redis) => redis.stop()))
})

describe('startRedis', () => {
  it('starts servers that know nothing of each other', async () => {
    const [one, other] = await Promise.all([start(), start()])
    await one.command('SET', 'key', 'value')
    expect(await one.command('GET', 'key')).toBe('value')
    expect(await other.command('GET', 'key')).toBe('')
    expect(one.port).not.toBe(other.port)
  })

  it('passes lines of redis.conf on', async () => {
    const redis = await start({ config: { maxmemory: '10mb', 'maxmemory-policy': 'allkeys-lru' } })
    expect(await redis.command('INFO', 'memory')).toContain('maxmemory_policy:allkeys-lru')
  })

  it('says what redis-server says when it does not start', async () => {
    await expect(startRedis({ config: { nonsense: 'yes' } })).rejects.toThrow(/nonsense/)
  })

  it('restarts on the same port with its data, and empty when told to', async () => {
    const redis = await start()
    const { port, pid } = redis
    await redis.command('SET', 'key', 'value')
    await redis.restart()
    expect(redis).toMatchObject({ port })
    expect(redis.pid).not.toBe(pid)
    expect(await redis.command('GET', 'key')).toBe('value')
    await redis.restart({ keepData: false })
    expect(await redis.command('GET', 'key')).toBe('')
  })

  it('restarts after a crash with what the append-only file holds', async () => {
    const redis = await start({ config: { appendonly: 'yes', appendfsync: 'always' } })
    await redis.command('SET', 'key', 'value')
    await redis.kill()
    await expect(redis.command('PING')).rejects.toThrow(/ECONNREFUSED/)
    await redis.restart()
    expect(await redis.command('GET', 'key')).toBe('value')
  })

  it('answers only after it is resumed when it was paused', async () => {
    const redis = await start()
    redis.pause()
    let answered = false
    const reply = redis.command('PING').then((text) => {
      answered = true
      return text
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(answered).toBe(false)
    redis.resume()
    expect(await reply).toBe('PONG')
  })

  it('leaves neither a process nor a folder behind, paused or not', async () => {
    const redis = await startRedis()
    const { pid } = redis
    const info = await redis.command('INFO', 'server')
    const folder = dirname(/config_file:(.*)/.exec(info)?.[1] ?? '')
    expect(existsSync(folder)).toBe(true)
    redis.pause()
    await redis.stop()
    expect(() => process.kill(pid, 0)).toThrow(/ESRCH/)
    expect(existsSync(folder)).toBe(false)
  })
})
