import { type LiveDenylist, memoryStore, ServiceAuthError } from 'express-service-auth'
import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { redisDenylist, redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { StartError, textFrom } from '../environment.js'
import { openOutbox } from './outbox.js'
import { coupledStorage, type Database, leasedStorage, type Storage } from './storage.js'

export interface OpenStorage {
  readonly name: string
  readonly storage: Storage
  /** Who is shut out while the receiver runs, where Redis keeps it. */
  readonly denylist?: LiveDenylist
  /** What only an app on Postgres has. */
  readonly database?: Database
  close(): Promise<void>
}

/** Told of what an operator should know, and can go on with. */
type Warn = (warning: string) => void

const CONNECT_MS = 5000

/**
 * Opens Postgres where there is a `DATABASE_URL`, or Redis where there is a `REDIS_URL`, or the memory of this process.
 * @throws {StartError} if an address is malformed, or its server unreachable or unfit; with `goesOnWithoutRedis`, Redis
 * may be unreachable
 */
export async function openStorage(
  warn: Warn,
  { goesOnWithoutRedis = false } = {},
): Promise<OpenStorage> {
  const databaseUrl = textFrom('DATABASE_URL')
  if (databaseUrl !== undefined) return openPostgres(databaseUrl, warn)
  const redisUrl = textFrom('REDIS_URL')
  if (redisUrl !== undefined) return openRedis(redisUrl, warn, goesOnWithoutRedis)
  const store = memoryStore()
  return { name: 'memory', storage: leasedStorage(store), close: async () => store.close() }
}

async function openRedis(url: string, warn: Warn, goesOnWithout: boolean): Promise<OpenStorage> {
  const { host } = addressOf(url, /^rediss?:$/, 'REDIS_URL must be like redis://localhost:6379/0')
  const redis = new Redis(url)
  // The store reports what fails; without a listener ioredis prints every lost connection.
  redis.on('error', () => undefined)
  const store = redisStore(redis)
  const denylist = redisDenylist(redis)
  const close = async () => {
    denylist.close()
    store.close()
    redis.disconnect()
  }
  try {
    for (const warning of await store.check()) warn(warning)
  } catch (error) {
    const complaint = `Redis at ${host} cannot serve: ${(error as Error).message}`
    const isOutOfReach = error instanceof ServiceAuthError && error.code === 'unavailable'
    if (!isOutOfReach || !goesOnWithout) {
      await close()
      throw new StartError(complaint)
    }
    warn(complaint)
  }
  return { name: `Redis at ${host}`, storage: leasedStorage(store), denylist, close }
}

async function openPostgres(url: string, warn: Warn): Promise<OpenStorage> {
  addressOf(url, /^postgres(ql)?:$/, 'DATABASE_URL must be like postgres://localhost:5432/orders')
  const pool = new Pool({ connectionString: url, connectionTimeoutMillis: CONNECT_MS })
  // The query that needs the connection fails, too.
  pool.on('error', () => undefined)
  const store = postgresStore(fromPg(pool))
  const end = async () => {
    store.close()
    await pool.end()
  }
  try {
    await pool.query('select')
    for (const warning of await store.check()) warn(warning)
    await pool.query('select from orders limit 0')
    const outbox = await openOutbox(url, warn)
    const database = { pool, store, outbox }
    return {
      name: 'Postgres',
      storage: coupledStorage(database),
      database,
      close: () => outbox.close().then(end),
    }
  } catch (error) {
    await end()
    throw explained(error)
  }
}

/** Never quotes the address: it may hold a password. */
function addressOf(text: string, scheme: RegExp, complaint: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.hostname && scheme.test(url.protocol)) return url
  throw new StartError(complaint)
}

/** Says what Postgres complains of by its code: its messages name users, databases and hosts. */
export function explained(error: unknown): StartError {
  if (error instanceof StartError) return error
  if (error instanceof ServiceAuthError) return new StartError(error.message)
  const { code = 'no code' } = Object(error) as { code?: unknown }
  return new StartError(
    `Postgres cannot serve (${code}); npx tsx example-app/migrate.ts makes the tables`,
  )
}
