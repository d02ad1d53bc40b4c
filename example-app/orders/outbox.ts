import type { PoolClient } from 'pg'
import PgBoss from 'pg-boss'
import type { Order } from './order.js'

const QUEUE = 'order-placed'

/** How often billing is tried, with a growing delay: for less time than it remembers a key. */
const QUEUE_OPTIONS = {
  name: QUEUE,
  retryLimit: 12,
  retryDelay: 1,
  retryBackoff: true,
  expireInSeconds: 60,
}

/** Notifies billing of an order; `id` is the same whenever it is the same order. */
export type Notify = (order: Order, id: string) => Promise<void>

/** The pending notifications of billing, in the database of the orders. */
export interface Outbox {
  /** A part of the transaction: what is rolled back is never sent. */
  send(transaction: PoolClient, id: string, order: Order): Promise<void>
  /** Sends what is there and what will come, at least once each. */
  deliver(notify: Notify): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the queue that `installOutbox` has made. It has connections of its own, so that handlers and
 * deliveries do not wait for each other. `warn` is told of an error in the background.
 */
export async function openOutbox(
  connectionString: string,
  warn: (warning: string) => void,
): Promise<Outbox> {
  const boss = new PgBoss({ connectionString, max: 2, migrate: false, schedule: false })
  boss.on('error', (error) => {
    warn(`the outbox has failed (${Reflect.get(error, 'code') ?? 'no code'}), and goes on`)
  })
  await boss.start()
  if ((await boss.getQueue(QUEUE)) === null) throw new Error('the queue is missing')
  return {
    async send(transaction, id, order) {
      const db = {
        executeSql: (text: string, values: unknown[]) => transaction.query(text, values),
      }
      await boss.send(QUEUE, order, { id, db })
    },
    async deliver(notify) {
      await boss.work<Order>(QUEUE, { pollingIntervalSeconds: 0.5 }, async (jobs) => {
        for (const { id, data } of jobs) await notify(data, id)
      })
    },
    close: () => boss.stop(),
  }
}

/** Makes the tables of pg-boss and the queue. May be run again. */
export async function installOutbox(connectionString: string): Promise<void> {
  const boss = new PgBoss({ connectionString, max: 1, supervise: false, schedule: false })
  boss.on('error', () => undefined)
  await boss.start()
  await boss.createQueue(QUEUE, QUEUE_OPTIONS)
  await boss.stop()
}
