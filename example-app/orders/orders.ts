import { randomUUID } from 'node:crypto'
import express, { type RequestHandler } from 'express'
import {
  type DecisionObserver,
  type LiveDenylist,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  type SessionVerifier,
  type Store,
  serviceAuth,
  serviceOf,
} from 'express-service-auth'
import type { SessionContainer } from 'supertokens-node/recipe/session'
import type { Order } from './order.js'
import { POLICY } from './policy.js'
import { createTracking } from './tracking.js'

/** Ordered, but never answered: so that there is a write whose outcome nobody knows. */
const BREAKS_ON_ITS_WAY = 'glass'

export interface OrdersOptions {
  /** The API domain of the identity core, where it is not the one in the file of the policy. */
  readonly issuer?: string
  readonly store: Store
  /** What is shut out while the receiver runs. */
  readonly denylist?: LiveDenylist | undefined
  readonly verifySession: SessionVerifier<SessionContainer>
  readonly onDecision?: DecisionObserver
  readonly orders?: Map<string, Order>
}

/** The receiver: reads take `orders:read`, writes `orders:write`, a fresh token and a key. */
export function createOrders(options: OrdersOptions) {
  const { issuer = POLICY.issuer, store, denylist, verifySession, onDecision } = options
  const { orders = new Map<string, Order>() } = options
  const auth = serviceAuth({ ...POLICY, issuer, denylist, onDecision })

  const app = express()
  app.use(createTracking({ auth, verifySession, denylist, issuer, onDecision, orders }))
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
    takeOrderInto(orders),
  )

  const health = () => ({ ...auth.health(), store: store.health() })
  return { app, ready: auth.ready, health, close: auth.close }
}

function takeOrderInto(orders: Map<string, Order>): RequestHandler {
  return (req, res) => {
    const { item, quantity } = req.body ?? {}
    if (typeof item !== 'string' || !Number.isSafeInteger(quantity)) {
      res.sendStatus(400)
      return
    }
    const order = { id: randomUUID(), item, quantity, orderedBy: serviceOf(req).name }
    orders.set(order.id, order)
    if (item === BREAKS_ON_ITS_WAY) {
      res.destroy()
      return
    }
    res.status(201).location(`/orders/${order.id}`).json(order)
  }
}
