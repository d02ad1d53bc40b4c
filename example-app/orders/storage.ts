import type { Request } from 'express'
import type { Store } from 'express-service-auth'
import type { PostgresStore } from 'express-service-auth/postgres'
import type { Pool, PoolClient } from 'pg'
import type { Order } from './order.js'
import type { Outbox } from './outbox.js'

/** Where orders are kept. */
export interface OrderBook {
  find(id: string): Promise<Order | undefined>
  /** Writes an order and, with an outbox, the notification of billing. */
  add(order: Order, request: Request): Promise<void>
  /** An order that is there before the first request. */
  seed(order: Order): Promise<void>
  count(): Promise<number>
}

/** All in which an app on Postgres differs from one on Redis or in memory. */
export interface Storage {
  readonly book: OrderBook
  /** Where tokens and keys of writes are kept. */
  readonly store: Store | PostgresStore<PoolClient>
}

/** Orders in memory, beside a store that does not know them: after a crash the two may differ. */
export function leasedStorage(store: Store, orders = new Map<string, Order>()): Storage {
  const put = async (order: Order) => void orders.set(order.id, order)
  return {
    book: {
      find: async (id) => orders.get(id),
      add: put,
      seed: put,
      count: async () => orders.size,
    },
    store,
  }
}

export interface Database {
  readonly pool: Pool
  readonly store: PostgresStore<PoolClient>
  readonly outbox: Outbox
}

const SELECT = `select id, item, quantity, ordered_by as "orderedBy" from orders where id = $1`
const INSERT = 'insert into orders (id, item, quantity, ordered_by) values ($1, $2, $3, $4)'
const valuesOf = ({ id, item, quantity, orderedBy }: Order) => [id, item, quantity, orderedBy]

/** What could be the id of an order. */
const ORDER_ID = /^[\w-]{1,64}$/

/** The order, the word to billing and the record of the key are one transaction: all of them, or none. */
export function coupledStorage({ pool, store, outbox }: Database): Storage {
  return {
    book: {
      async find(id) {
        if (!ORDER_ID.test(id)) return undefined
        const { rows } = await pool.query(SELECT, [id])
        const [order] = rows
        // A bigint comes as a text.
        return order && { ...order, quantity: Number(order.quantity) }
      },
      async add(order, request) {
        const transaction = store.transactionOf(request)
        await transaction.query(INSERT, valuesOf(order))
        await outbox.send(transaction, store.effectId(request, 'order-placed'), order)
      },
      async seed(order) {
        await pool.query(`${INSERT} on conflict do nothing`, valuesOf(order))
      },
      async count() {
        const { rows } = await pool.query('select count(*) from orders')
        return Number(rows[0]?.count)
      },
    },
    store,
  }
}
