import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import {
  acceptOneOf,
  type LiveDenylist,
  logDecisions,
  requireIdempotencyKey,
  requireSingleUse,
  type ServiceAuthPolicy,
  serviceAuth,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { redisDenylist, redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import pg from 'pg'

// A receiver in a process of its own, which nobody observes unless OBSERVED_BY says so. A message moves its
// clock so many seconds ahead.

const { ISSUER = '', JWKS_URI = '', REDIS_URL = '', OBSERVED_BY } = process.env

let aheadMs = 0
process.on('message', (seconds: number) => {
  aheadMs += seconds * 1000
  process.send?.({ aheadMs })
})

const ignore = () => {}
if (OBSERVED_BY === 'logDecisions') logDecisions({ info: ignore, warn: ignore, error: ignore })

const policy: ServiceAuthPolicy = {
  issuer: ISSUER,
  jwksUri: JWKS_URI,
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: { billing: ['orders:read'] },
  clock: () => Date.now() + aheadMs,
  onDecision: OBSERVED_BY === 'onDecision' ? ignore : undefined,
}

function connect(): Redis {
  const redis = new Redis(REDIS_URL)
  redis.on('error', ignore)
  return redis
}

const broken: LiveDenylist = {
  lists() {
    throw new Error('the password is a-password')
  },
  ready: async () => {},
  health: () => ({ state: 'fresh', entries: 0, version: 1 }),
  close: ignore,
}

const end: RequestHandler = (_req, res) => void res.json({})
const app = express()
const auth = serviceAuth(policy)
app.get('/first', auth, end)
app.get('/second', serviceAuth(policy), end)
app.get('/without-express', async (req, res) => {
  const { outcome } = await auth.authenticate(req)
  res.sendStatus(outcome === 'undecided' ? 503 : 200)
})
app.get('/broken', serviceAuth({ ...policy, denylist: broken }), end)

if (REDIS_URL !== '') {
  const redis = connect()
  const store = redisStore(redis)
  app.post('/writes', auth, express.json(), requireIdempotencyKey({ store }), end)
  app.post('/uses', auth, requireSingleUse({ store }), end)

  const denylist = redisDenylist(connect())
  const denying = serviceAuth({ ...policy, denylist })
  const verifySession: RequestHandler = (_req, _res, next) => next()
  const sessions = sessionCredential(verifySession, { denylist, issuer: ISSUER })
  app.get('/denied', denying, end)
  app.get(
    '/either',
    acceptOneOf([
      { name: 'session', ...sessions },
      { name: 'service', ...serviceCredential(denying) },
    ]),
    end,
  )
}

// Nothing listens there.
const pool = new pg.Pool({ connectionString: 'postgres://orders:a-password@127.0.0.1:1/orders' })
pool.on('error', ignore)
const coupled = requireIdempotencyKey({ store: postgresStore(fromPg(pool)) })
app.post('/coupled', auth, express.json(), coupled, end)

const server = app.listen(0, '127.0.0.1', (error) => {
  if (error) throw error
  process.send?.({ port: (server.address() as AddressInfo).port })
})
