import express, { type NextFunction, type Request, type Response } from 'express'
import { requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { Pool } from 'pg'

// One receiver of the soak on Postgres, to be killed at any time. Its effect is a row in the ledger.

function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} must be set`)
  return value
}

const auth = serviceAuth({
  issuer: setting('ISSUER'),
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
})
const pool = new Pool({ connectionString: setting('DATABASE_URL'), max: 24 })
const store = postgresStore(fromPg(pool), { sweepSeconds: 1 })

const app = express()
app.use(auth)
/** Both write the same; the records of the second expire while the soak lasts. */
for (const [path, retentionSeconds] of [
  ['/orders', 86_400],
  ['/drafts', Number(setting('DRAFT_SECONDS'))],
] as const) {
  const guard = requireIdempotencyKey({ store, retentionSeconds })
  app.post(path, express.json(), guard, async (req, res) => {
    const { item } = req.body
    const key = req.idempotency?.key
    if (Math.random() < 0.5) await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
    const insert = 'insert into effect (path, key) values ($1, $2)'
    await store.transactionOf(req).query(insert, [path, key])
    res.status(201).json({ key, item })
  })
}
// Its statement has failed, because Postgres was stopped: nothing has happened.
app.use((_error: unknown, _req: Request, res: Response, next: NextFunction) => {
  if (res.headersSent) next()
  else res.sendStatus(503)
})

await auth.ready()
const server = app.listen(Number(setting('PORT')), '127.0.0.1', (error) => {
  if (error) throw error
  process.send?.('listening')
})
process.on('disconnect', () => {
  server.closeAllConnections()
  process.exit()
})
