import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import express, { type RequestHandler } from 'express'
import {
  acceptOneOf,
  type IdempotencyStore,
  type LiveDenylist,
  logDecisions,
  memoryStore,
  requireIdempotencyKey,
  requireSingleUse,
  type ServiceAuthPolicy,
  serviceAuth,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import {
  coreClient,
  type MigrationEndpointOptions,
  type MigrationIssuer,
  migrationEndpoint,
} from 'express-service-auth/migration'
import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { redisDenylist, redisStore } from 'express-service-auth/redis'
import pg from 'pg'
import { redisClient } from './redis-client.js'

// A receiver in a process of its own, which nobody observes unless OBSERVED_BY says so. A message moves its
// clock so many seconds ahead.

const { ISSUER = '', JWKS_URI = '', REDIS = '', HOOK_TOKEN = '', OBSERVED_BY } = process.env

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

if (REDIS !== '') {
  const redis = await redisClient(JSON.parse(REDIS))
  const store = redisStore(redis)
  app.post('/writes', auth, express.json(), requireIdempotencyKey({ store }), end)
  app.post('/uses', auth, requireSingleUse({ store }), end)

  const denylist = redisDenylist(redis)
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

// A store of the app's own that resolves to nothing.
const nothing = async (): Promise<never> => undefined as never
const wrong: IdempotencyStore & { consume(): Promise<never> } = {
  consume: nothing,
  reserve: nothing,
  renew: nothing,
  settle: nothing,
}
app.post('/wrong-uses', auth, requireSingleUse({ store: wrong }), end)
app.post('/wrong-writes', auth, express.json(), requireIdempotencyKey({ store: wrong }), end)

const failing = async (): Promise<never> => {
  throw new Error('the password is a-password')
}
const failingEnd: IdempotencyStore = { ...memoryStore(), settle: failing }
const failingRenewal: IdempotencyStore = { ...memoryStore(), renew: failing }
const keyIn = (store: IdempotencyStore) => requireIdempotencyKey({ store, leaseSeconds: 1 })
app.post('/failing-ends', auth, express.json(), keyIn(failingEnd), end)
app.post('/failing-renewals', auth, express.json(), keyIn(failingRenewal), async (_req, res) => {
  await delay(600)
  res.json({})
})

const migrate = (
  changes: Partial<MigrationEndpointOptions> = {},
  tokens: MigrationIssuer['tokens'] = [HOOK_TOKEN],
) =>
  migrationEndpoint({
    core: coreClient({ baseUrl: 'http://127.0.0.1:2', apiKey: 'an-api-key' }), // Nothing listens there.
    issuers: {
      legacy: {
        tokens,
        withoutOrganization: ['public'],
        connections: [
          { provider: 'auth0', connection: 'users', as: { recipeId: 'emailpassword' } },
        ],
      },
    },
    loadUser: async () => ({
      identities: [
        {
          provider: 'auth0',
          connection: 'users',
          userId: 'ada',
          email: 'ada@example.com',
          passwordHash: `$2b$10$${'x'.repeat(53)}`,
          hashingAlgorithm: 'bcrypt',
        },
      ],
    }),
    limits: { credential: { consume: async () => {} }, user: { consume: async () => {} } },
    onDecision: OBSERVED_BY === 'onDecision' ? ignore : undefined,
    ...changes,
  })
if (HOOK_TOKEN !== '') {
  const unlimited = { consume: async () => {} }
  app.use('/migrate', migrate())
  app.use('/migrate-without-tokens', migrate({}, failing))
  app.use(
    '/migrate-without-limiter',
    migrate({ limits: { credential: unlimited, user: { consume: failing } } }),
  )
  app.use('/migrate-without-users', migrate({ loadUser: failing }))
}

const server = app.listen(0, '127.0.0.1', (error) => {
  if (error) throw error
  process.send?.({ port: (server.address() as AddressInfo).port })
})
