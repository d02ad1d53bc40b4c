import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeHeapSnapshot } from 'node:v8'
import express, { type NextFunction, type Request, type Response } from 'express'
import { requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { redisStore } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'
import { Pool } from 'pg'
import { OPERATION, type ReceiverMeasurement, type ReceiverSettings } from './receiver-process.js'

// One receiver of the soak, to be killed at any time. Its effects are rows of the table: on Postgres of the
// table `effect`, on Redis, which cannot share a transaction with it, lines of a file.

const settings: ReceiverSettings = JSON.parse(process.env['SETTINGS'] ?? '')

/** The package's clock jumps; what is written into the table has the time of the machine. */
let clockErrorMs = 0
const trueNow = Date.now
Date.now = () => trueNow() + clockErrorMs

const auth = serviceAuth({
  issuer: settings.issuer,
  jwksUri: settings.jwksUri,
  allowInsecureHttp: true,
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
  clockToleranceSeconds: 60,
  // Full after a few minutes: until then its memory grows as it should.
  tokenCache: { max: 5 },
})
const common = { operation: OPERATION, retentionSeconds: 600 }
const app = express()
app.use(auth)

type Write = (request: Request, effect: string) => unknown

/** Answers with the effect that the write has had. */
const handle = (write: Write) => async (request: Request, response: Response) => {
  if (Math.random() < 0.5) await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
  const effect = randomBytes(9).toString('base64url')
  await write(request, effect)
  const { key, item } = request.body
  response.status(201).json({ key, item, effect })
}

function serveFromRedis({ nodes, sentinelName: name, replicas, tableFile = '' }: ReceiverSettings) {
  const client = name
    ? new Redis({ sentinels: [...nodes], name, lazyConnect: true })
    : new Cluster([...nodes], { lazyConnect: true })
  const store = redisStore(client, { replicas })
  const write: Write = ({ body }, effect) =>
    appendFileSync(tableFile, `${body.key} ${effect} ${trueNow()}\n`)
  const guard = requireIdempotencyKey({ ...common, store, leaseSeconds: 3 })
  app.post('/orders', express.json(), guard, handle(write))
  return client
}

function serveFromPostgres(connectionString: string) {
  const pool = new Pool({ connectionString, max: 24, idleTimeoutMillis: 500 })
  const store = postgresStore(fromPg(pool), { sweepSeconds: 5, transactionMs: 5000 })
  const insert = 'insert into effect (key, effect, at) values ($1, $2, $3)'
  const write: Write = (request, effect) =>
    store.transactionOf(request).query(insert, [request.body.key, effect, trueNow()])
  const guard = requireIdempotencyKey({ ...common, store })
  app.post('/orders', express.json(), guard, handle(write))
  return pool
}

const client = settings.databaseUrl
  ? serveFromPostgres(settings.databaseUrl)
  : serveFromRedis(settings)
// Its statement has failed, because Postgres was stopped: nothing has happened.
app.use((_error: unknown, _request: Request, response: Response, next: NextFunction) => {
  if (response.headersSent) next()
  else response.sendStatus(503)
})

await auth.ready()
const server = app.listen(settings.port, process.env['HOST'] ?? '', (error) => {
  if (error) throw error
  process.send?.('listening')
})

async function measure(): Promise<ReceiverMeasurement> {
  const listeners = [process, server, client].flatMap((emitter) =>
    emitter.eventNames().map((name) => emitter.listenerCount(name as 'exit')),
  )
  const connections = await new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
  return {
    // Collects garbage first.
    heapFile: writeHeapSnapshot(join(tmpdir(), `${process.pid}.heapsnapshot`)),
    handles: process.getActiveResourcesInfo().length,
    listeners: listeners.reduce((sum, count) => sum + count, 0),
    connections,
  }
}

process.on('message', async (order: 'measure' | number) => {
  if (order === 'measure') process.send?.(await measure())
  else clockErrorMs = order
})
process.on('disconnect', () => {
  server.closeAllConnections()
  process.exit()
})
