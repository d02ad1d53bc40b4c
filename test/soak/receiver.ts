import { appendFileSync } from 'node:fs'
import express from 'express'
import { requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'

// One receiver of the soak, to be killed at any time. Its effect is a line in the ledger.

function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} must be set`)
  return value
}

const ledger = setting('LEDGER')
const leaseSeconds = Number(setting('LEASE_SECONDS'))
const redis = new Redis(setting('REDIS_URL'))
redis.on('error', () => {})
const auth = serviceAuth({
  issuer: setting('ISSUER'),
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
})

const app = express()
app.use(auth)
app.post(
  '/orders',
  express.json(),
  requireIdempotencyKey({ store: redisStore(redis), leaseSeconds }),
  async (req, res) => {
    const { item } = req.body
    if (Math.random() < 0.5) await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
    appendFileSync(ledger, `${req.idempotency?.key}\n`)
    res.status(201).json({ key: req.idempotency?.key, item })
  },
)

await auth.ready()
const server = app.listen(Number(setting('PORT')), '127.0.0.1', (error) => {
  if (error) throw error
  process.send?.('listening')
})
process.on('disconnect', () => {
  server.closeAllConnections()
  process.exit()
})
