import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import { serviceAuth } from 'express-service-auth'
import { redisDenylist } from 'express-service-auth/redis'
import { redisClient } from './redis-client.js'

// A receiver with a live denylist in a process of its own. It serves before it knows the list.

const { ISSUER, NAME, SERVER } = process.env as Record<string, string>
/** Connections without a request stay open for as long as a test takes. */
const KEEP_ALIVE_MS = 120_000

const redis = await redisClient(JSON.parse(SERVER ?? ''))
const denylist = redisDenylist(redis, { name: NAME })
const auth = serviceAuth({
  issuer: ISSUER as string,
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing', 'reporting'],
  denylist,
})
const app = express()
app.get('/health', (_request, response) => {
  response.json(denylist.health())
})
app.use(auth)
app.get('/orders', (_request, response) => {
  response.sendStatus(200)
})
app.get('/slow/:ms', async (request, response) => {
  await sleep(Number(request.params.ms))
  response.sendStatus(200)
})

auth.ready().catch(() => {})
const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, app)
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
process.on('disconnect', () => process.exit())
