import { randomUUID } from 'node:crypto'
import express, { type RequestHandler } from 'express'
import {
  type DecisionObserver,
  type KeySet,
  type LiveDenylist,
  requirePermissions,
  type SenderConstraintOption,
  type SessionVerifier,
  serviceAuth,
  serviceOf,
} from 'express-service-auth'
import type { SessionContainer } from 'supertokens-node/recipe/session'
import type { OrderBook, Persistence } from './persistence.js'
import { POLICY } from './policy.js'
import { createTracking } from './tracking.js'

/** Ordered, but never answered: so that there is a write whose outcome nobody knows. */
const BREAKS_ON_ITS_WAY = 'glass'

/** Without control characters: Postgres has no room for all of them. */
const ITEM = /^\P{Cc}*$/u

export interface OrdersOptions extends Persistence {
  /** The API domain, where it is not the one in the file of the policy. */
  readonly issuer?: string
  /** Default: that of the issuer, refreshed as the package does by itself. */
  readonly keySet?: KeySet | undefined
  /** What is shut out while the receiver runs. */
  readonly denylist?: LiveDenylist | undefined
  readonly verifySession: SessionVerifier<SessionContainer>
  readonly onDecision?: DecisionObserver
  /** How bound tokens are checked. Default: they are refused. */
  readonly senderConstraint?: SenderConstraintOption
}

/** The receiver: reads take `orders:read`, writes `orders:write`, a fresh token and a key. */
export function createOrders(options: OrdersOptions) {
  const { issuer = POLICY.issuer, keySet, denylist, verifySession, onDecision } = options
  const { book, once, storeHealth, senderConstraint } = options
  const auth = serviceAuth({ ...POLICY, issuer, keySet, denylist, onDecision, senderConstraint })

  const app = express().disable('x-powered-by')
  app.use(createTracking({ auth, verifySession, denylist, issuer, onDecision, book }))
  app.use(auth)

  app.get('/orders/:id', requirePermissions('orders:read'), async (req, res) => {
    const order = await book.find(req.params.id)
    if (order) res.json(order)
    else res.sendStatus(404)
  })

  app.post(
    '/orders',
    requirePermissions('orders:write'),
    express.json(),
    ...once,
    takeOrderInto(book),
  )

  const health = () => ({ ...auth.health(), ...storeHealth() })
  return { app, ready: auth.ready, health, close: auth.close }
}

function takeOrderInto(book: OrderBook): RequestHandler {
  return async (req, res) => {
    const { item, quantity } = req.body ?? {}
    if (typeof item !== 'string' || !ITEM.test(item) || !Number.isSafeInteger(quantity)) {
      res.sendStatus(400)
      return
    }
    const order = { id: randomUUID(), item, quantity, orderedBy: serviceOf(req).name }
    await book.add(order, req)
    if (item === BREAKS_ON_ITS_WAY) {
      res.destroy()
      return
    }
    res.status(201).location(`/orders/${order.id}`).json(order)
  }
}
