// The example of the contract and of the README: it compiles as it stands.
import express, { type RequestHandler } from 'express'
import {
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  serviceAuth,
} from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'

declare const readOrder: RequestHandler
declare const createOrder: RequestHandler

const store = redisStore(new Redis(process.env['REDIS_URL'] ?? ''))
const app = express()

app.use(
  serviceAuth({
    issuer: 'https://api.example.com',
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: { billing: ['orders:read', 'orders:write'], reporting: ['orders:read'] },
  }),
)

app.get('/orders/:id', requirePermissions('orders:read'), readOrder)
app.post(
  '/orders',
  requirePermissions('orders:write'),
  express.json(),
  requireSingleUse({ store }),
  requireIdempotencyKey({ store }),
  createOrder,
)
