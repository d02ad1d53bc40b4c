import { randomUUID } from 'node:crypto'
import express from 'express'
import {
  type DecisionObserver,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  type Store,
  serviceAuth,
  serviceOf,
} from 'express-service-auth'

export interface Order {
  readonly id: string
  readonly item: string
  readonly quantity: number
  readonly orderedBy: string
}

export interface OrdersOptions {
  /** The API domain of the identity core. */
  readonly issuer: string
  readonly store: Store
  readonly onDecision: DecisionObserver
  readonly orders?: Map<string, Order>
}

/** The receiver: reads take `orders:read`, writes `orders:write`, a fresh token and a key. */
export function createOrders(options: OrdersOptions) {
  const { issuer, store, onDecision, orders = new Map<string, Order>() } = options
  const auth = serviceAuth({
    issuer,
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: { billing: ['orders:read', 'orders:write'], reporting: ['orders:read'] },
    onDecision,
  })

  const app = express()
  app.use(auth)

  app.get('/orders/:id', requirePermissions('orders:read'), (req, res) => {
    const order = orders.get(req.params.id)
    if (order) res.json(order)
    else res.sendStatus(404)
  })

  app.post(
    '/orders',
    requirePermissions('orders:write'),
    express.json(),
    requireSingleUse({ store }),
    requireIdempotencyKey({ store }),
    (req, res) => {
      const { item, quantity } = req.body ?? {}
      if (typeof item !== 'string' || !Number.isSafeInteger(quantity)) {
        res.sendStatus(400)
        return
      }
      const order = { id: randomUUID(), item, quantity, orderedBy: serviceOf(req).name }
      orders.set(order.id, order)
      res.status(201).location(`/orders/${order.id}`).json(order)
    },
  )

  return { app, ready: auth.ready, health: auth.health, close: auth.close }
}
