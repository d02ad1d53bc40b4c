/** A receiver whose process a test freezes. It never waits for anything else. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { serviceAuth } from 'express-service-auth'
import { redisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'

const { ISSUER = '', REDIS_PORT } = process.env
const redis = new Redis({ port: Number(REDIS_PORT), lazyConnect: true })
const auth = serviceAuth({
  issuer: ISSUER,
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
  denylist: redisDenylist(redis),
})
const app = express().use(auth, (_request, response) => {
  response.sendStatus(204)
})
// A busy machine may take longer to answer than a denylist waits.
await auth.ready().catch(() => auth.ready())
const server = createServer(app)
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
process.on('disconnect', () => process.exit())
