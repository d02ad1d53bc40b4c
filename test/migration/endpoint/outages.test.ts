import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { OUTAGES, startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { until } from '../../support/until.js'
import { API_KEY, type GatedCore, openGatedCore } from './gated-core.js'
import { bodyAbout, type Endpoint, newId, openEndpoint, UNAVAILABLE } from './kit.js'

const TIMEOUT_MS = 800

let core: GatedCore
let server: RedisServer
beforeAll(async () => {
  core = await openGatedCore()
  server = await startRedis()
})
afterAll(async () => {
  await server.stop()
})

/** Refused with the 503 while the proxy has an outage, and served again afterwards. */
async function expectOutage(
  { endpoint, proxy }: { endpoint: Endpoint; proxy: TcpProxy },
  reasons: readonly string[],
): Promise<void> {
  for (const outage of OUTAGES) {
    await until('it serves', async () => (await endpoint.post(bodyAbout(newId()))).status === 200)
    await proxy.fail(outage)
    const id = newId()
    const reply = await endpoint.post(bodyAbout(id))
    expect(reply).toMatchObject(UNAVAILABLE)
    expect(reply.headers.get('retry-after')).toBe('5')
    expect(reasons).toContain(endpoint.decisions.at(-1)?.reason)
    await proxy.restore()
    proxy.cut()
    await until(`the user has come over after: ${outage}`, async () => {
      return (await endpoint.post(bodyAbout(id))).status === 200
    })
    expect(core.commits().filter((one) => one === id)).toHaveLength(1)
  }
  expect(endpoint.errors).toEqual([])
}

describe.concurrent('while a part is unreachable, the answer is the 503, and nothing is lost', () => {
  it('the core', async () => {
    const proxy = await startTcpProxy({ host: '127.0.0.1', port: core.port })
    const endpoint = await openEndpoint(core, {
      options: {
        timeoutMs: TIMEOUT_MS,
        core: coreClient({
          baseUrl: `http://127.0.0.1:${proxy.port}`,
          apiKey: API_KEY,
          timeoutMs: 2 * TIMEOUT_MS,
          stageTimeoutMs: 2 * TIMEOUT_MS,
        }),
      },
    })
    await expectOutage({ endpoint, proxy }, ['core_unavailable', 'outcome_unknown'])
    await proxy.close()
  })

  it('a limiter', async () => {
    const proxy = await startTcpProxy({ host: server.host, port: server.port })
    const client = new Redis(`redis://127.0.0.1:${proxy.port}`, { retryStrategy: () => 20 })
    client.on('error', () => {})
    const limiter = new RateLimiterRedis({ storeClient: client, points: 100_000, duration: 60 })
    const endpoint = await openEndpoint(core, {
      options: { timeoutMs: TIMEOUT_MS, limits: { credential: limiter, user: limiter } },
    })
    await expectOutage({ endpoint, proxy }, ['limiter_unavailable'])
    client.disconnect()
    await proxy.close()
  })
})
