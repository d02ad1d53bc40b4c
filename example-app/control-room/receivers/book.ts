import type { Order } from '../../orders/order.js'
import type { Handlers } from './ipc/calls.js'

/** The orders of all receivers, here, where no kill reaches them. */
export interface Book {
  readonly handlers: Handlers
  /** How many were ever written. */
  count(): number
}

/** The one that is there from the beginning. */
const FIRST_ORDER: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }
/** The older ones are counted, and cannot be read any more: a room may be under load for hours. */
const READABLE_ORDERS = 10_000

export function createBook(): Book {
  const orders = new Map<string, Order>()
  let written = 1
  return {
    handlers: {
      findOrder: (id: string) => (id === FIRST_ORDER.id ? FIRST_ORDER : orders.get(id)),
      addOrder(order: Order) {
        orders.set(order.id, order)
        written += 1
        const [oldest] = orders.keys()
        if (orders.size > READABLE_ORDERS && oldest !== undefined) orders.delete(oldest)
      },
      countOrders: () => written,
    },
    count: () => written,
  }
}
