import express from 'express'
import { requireSingleUse } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { afterAll, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { startRedis } from '../support/redis/redis.js'

const [issuer, redis] = await Promise.all([createTestIssuer(), startRedis()])
afterAll(() => Promise.all([issuer.close(), redis.stop()]))

it('a proof that is sent to all instances together passes once', async () => {
  const clients = [0, 1].map(() => new Redis(redis.url, { lazyConnect: true }))
  const dpop = { baseUrls: ['https://orders.test'] }
  const receivers = await Promise.all(
    clients.map(async (client) => {
      // No reply may be late, however busy the machine is.
      const store = redisStore(client, { timeoutMs: 5000 })
      const auth = authFor(issuer.policy({ senderConstraint: { dpop } }))
      await auth.ready()
      return startReceiver({
        express,
        mount: (app) => app.use(auth, requireSingleUse({ store })),
      })
    }),
  )
  const { token, proof } = issuer.boundToken()
  for (let write = 0; write < 3; write += 1) {
    const headers = {
      authorization: `DPoP ${token}`,
      dpop: proof({ method: 'POST', url: 'https://orders.test/orders' }),
    }
    const sent = Array.from({ length: 40 }, (_, index) =>
      fetch(`${receivers[index % 2]?.url}/orders`, { method: 'POST', headers }),
    )
    const statuses = (await Promise.all(sent)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 401)).toHaveLength(39)
  }
  for (const client of clients) client.disconnect()
})
