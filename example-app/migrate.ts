import { migration } from 'express-service-auth/postgres'
import { Pool } from 'pg'
import { StartError, textFrom } from './environment.js'
import { launch } from './launch.js'
import { explained } from './orders/open-storage.js'
import { installOutbox } from './orders/outbox.js'

const ORDERS = `create table if not exists orders (
  id text primary key,
  item text not null,
  quantity bigint not null,
  ordered_by text not null
)`

await launch('migrate', async () => {
  const connectionString = textFrom('DATABASE_URL')
  if (connectionString === undefined) {
    throw new StartError('set DATABASE_URL, such as postgres://localhost:5432/orders')
  }
  try {
    const pool = new Pool({ connectionString })
    await pool.query(migration())
    await pool.query(ORDERS)
    await pool.end()
    await installOutbox(connectionString)
  } catch (error) {
    throw explained(error)
  }
  console.log('migrate: the tables of orders, express-service-auth and pg-boss are there')
  return undefined
})
