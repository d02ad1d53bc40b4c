import { randomUUID } from 'node:crypto'
import express, { type RequestHandler } from 'express'
import {
  acceptOneOf,
  requireIdempotencyKey,
  requirePermissions,
  type ServiceAuthPolicy,
  type SessionVerifier,
  serviceAuth,
  serviceCredential,
  serviceOf,
  sessionCredential,
} from 'express-service-auth'
import type { SessionContainer } from 'supertokens-node/recipe/session'
import type { OrderBook, Storage } from './storage.js'

/** Ordered, but never answered: a write whose outcome nobody knows, for trying the runbook's `settle`. */
const BREAKS_ON_ITS_WAY = 'glass'

/** Without control characters: Postgres has no room for all of them. */
const ITEM = /^\P{Cc}*$/u

export interface OrdersOptions {
  readonly policy: ServiceAuthPolicy
  readonly storage: Storage
  /** Verifies the sessions of users. */
  readonly verifySession: SessionVerifier<SessionContainer>
}

/** The receiver: reads take `orders:read`, writes `orders:write`, a fresh token and a key. */
export function createOrders({ policy, storage, verifySession }: OrdersOptions) {
  const { book, store } = storage
  const auth = serviceAuth(policy)
  const { issuer, denylist, onDecision } = policy
  const either = acceptOneOf(
    [
      { name: 'service', ...serviceCredential(auth), authorize: requirePermissions('orders:read') },
      { name: 'user', ...sessionCredential(verifySession, { denylist, issuer }) },
    ],
    { onDecision },
  )

  const app = express().disable('x-powered-by')

  // The one endpoint that people ask, too. It stands before `auth`, which would refuse a user's session.
  app.get('/orders/:id/tracking', either, async (req, res) => {
    const order = await book.find(String(req.params['id']))
    const { name, identity } = either.credentialOf(req)
    const asker = name === 'service' ? identity.name : identity.getUserId()
    if (order) res.json({ id: order.id, state: 'packed', askedBy: `${name} ${asker}` })
    else res.sendStatus(404)
  })

  app.use(auth)

  app.get('/orders/:id', requirePermissions('orders:read'), async (req, res) => {
    const order = await book.find(String(req.params['id']))
    if (order) res.json(order)
    else res.sendStatus(404)
  })

  app.post(
    '/orders',
    requirePermissions('orders:write'),
    express.json(),
    requireIdempotencyKey({ store, singleUse: true }),
    takeOrderInto(book),
  )

  // A store on Postgres has no state of its own between writes.
  const health = () => ({ ...auth.health(), ...('health' in store && { store: store.health() }) })
  return { app, ready: auth.ready, health, close: auth.close }
}

function takeOrderInto(book: OrderBook): RequestHandler {
  return async (req, res) => {
    const { item, quantity = 1 } = req.body ?? {}
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
