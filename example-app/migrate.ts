import { migration } from 'express-service-auth/postgres'
import { textFrom } from './environment.js'
import { launch } from './launch.js'
import { connect, explained } from './orders/connect.js'
import { installOutbox } from './orders/outbox.js'
import { StartError } from './start-error.js'

const ORDERS = `create table if not exists orders (
  id text primary key,
  item text not null,
  quantity bigint not null,
  ordered_by text not null
)`

await launch('migrate', async () => {
  const databaseUrl = textFrom('DATABASE_URL')
  if (databaseUrl === undefined) {
    throw new StartError('set DATABASE_URL, such as postgres://localhost:5432/orders')
  }
  const pool = await connect(databaseUrl)
  try {
    await pool.query(migration())
    await pool.query(ORDERS)
    await installOutbox(databaseUrl)
  } catch (error) {
    throw explained(error)
  } finally {
    await pool.end()
  }
  console.log('migrate: the tables of orders, express-service-auth and pg-boss are there')
  return undefined
})
