import express, { Router } from 'express'
import {
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  serviceAuth,
} from 'express-service-auth'

/** Billing as a receiver: orders sends it each order at least once, and billing records it once. */
export function createPlacedOrders(core: { issuer: string; jwksUri: string | undefined }) {
  const auth = serviceAuth({
    ...core,
    audience: 'billing',
    source: 'microservice',
    tokenType: 'service-access',
    callers: { orders: ['billing:notify'] },
  })
  const store = memoryStore()
  /** How often each order was taken in. */
  const taken = new Map<string, number>()

  const router = Router()
  router.post(
    '/placed-orders',
    auth,
    requirePermissions('billing:notify'),
    express.json(),
    requireIdempotencyKey({ store, singleUse: true }),
    (req, res) => {
      const { id } = req.body ?? {}
      if (typeof id !== 'string') {
        res.sendStatus(400)
        return
      }
      taken.set(id, (taken.get(id) ?? 0) + 1)
      res.sendStatus(204)
    },
  )
  router.get('/placed-orders/:id', (req, res) => {
    const { id } = req.params
    const times = taken.get(id)
    if (times === undefined) res.sendStatus(404)
    else res.json({ id, taken: times })
  })

  const close = () => {
    auth.close()
    store.close()
  }
  return { router, close }
}
