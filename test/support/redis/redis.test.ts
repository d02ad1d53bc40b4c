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

  it('says what redis-server says when it does not start', async () => {
    await expect(startRedis({ config: { nonsense: 'yes' } })).rejects.toThrow(/nonsense/)
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
