import { type RequestHandler, Router } from 'express'
import {
  acceptOneOf,
  type DecisionObserver,
  type LiveDenylist,
  requirePermissions,
  type ServiceAuth,
  type SessionVerifier,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import type { SessionContainer } from 'supertokens-node/recipe/session'
import type { OrderBook } from './persistence.js'

export interface TrackingOptions {
  readonly auth: ServiceAuth
  readonly verifySession: SessionVerifier<SessionContainer>
  /** What is shut out; of sessions, those that a denied key has signed. */
  readonly denylist: LiveDenylist | undefined
  readonly issuer: string
  readonly onDecision: DecisionObserver | undefined
  readonly book: OrderBook
}

/** The one endpoint that people ask, too: where an order is. */
export function createTracking(options: TrackingOptions): RequestHandler {
  const { auth, verifySession, denylist, issuer, onDecision, book } = options
  const either = acceptOneOf(
    [
      { name: 'service', ...serviceCredential(auth), authorize: requirePermissions('orders:read') },
      { name: 'user', ...sessionCredential(verifySession, { denylist, issuer }) },
    ],
    { onDecision },
  )
  return Router().get('/orders/:id/tracking', either, async (req, res) => {
    const order = await book.find(req.params.id)
    if (order === undefined) {
      res.sendStatus(404)
      return
    }
    const { name, identity } = either.credentialOf(req)
    const asker = name === 'service' ? identity.name : identity.getUserId()
    res.json({ id: order.id, state: 'packed', askedBy: `${name} ${asker}` })
  })
}
