// What a receiver's own handlers see of the request behind the middleware.
import express, { type Request, type RequestHandler, type Response } from 'express'
import {
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  type ServiceIdentity,
  serviceAuth,
  serviceOf,
} from 'express-service-auth'

const store = memoryStore()
const guard = serviceAuth({
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
})
const singleUse = requireSingleUse({ store })
const idempotent = requireIdempotencyKey({ store })
const app = express()

// They are request handlers, whatever the route's parameters are.
const plain: readonly RequestHandler[] = [guard, requirePermissions('a'), singleUse, idempotent]
const ofRoute: readonly RequestHandler<{ id: string }>[] = [guard, singleUse, idempotent]
app.use(guard)
app.use([guard, singleUse])
app.use('/orders', guard, ...plain)
express
  .Router({ mergeParams: true })
  .use(guard)
  .patch('/:id', ...ofRoute)

// They leave the types that Express infers from the path as they are.
app.get('/orders/:id', requirePermissions('orders:read'), (req, res) => {
  const id: string = req.params.id
  // @ts-expect-error the path has no such parameter
  req.params.name
  res.json({ id, caller: req.service?.name })
})
app.post('/orders/:id/lines/:line', guard, singleUse, express.json(), idempotent, (req, res) => {
  const path: [string, string] = [req.params.id, req.params.line]
  req.idempotency?.release()
  res.status(201).json({ path })
})

// They stand beside handlers that declare their own types.
interface NewOrder {
  amount: number
}
const typed: RequestHandler<{ id: string }, { ok: boolean }, NewOrder, { dry: string }> = (
  req,
  res,
) => {
  res.json({ ok: req.body.amount > 0 && req.query.dry === req.params.id })
}
app.put('/orders/:id', guard, idempotent, typed)
async function asyncHandler(req: Request<{ id: string }, unknown, NewOrder>, res: Response) {
  res.json({ id: req.params.id, amount: req.body.amount })
}
app.put('/orders/:id', guard, idempotent, asyncHandler)

// Inside a handler.
app.get('/whoami', (req, res) => {
  const identity: ServiceIdentity = serviceOf(req)
  const { name, issuer, audience, keyId } = identity
  const words: string[] = [name, issuer, audience, keyId, ...identity.permissions]
  const expiresAt: number = identity.expiresAt
  const optional: [string | undefined, number | undefined] = [identity.tokenId, identity.issuedAt]
  const claim: unknown = identity.claims['custom']
  const may: boolean = req.service?.permissions.has('orders:read') ?? false
  res.json({ words, expiresAt, optional, claim, may })
})
app.post('/work', (req, res) => {
  if (!req.idempotency) return
  const { key, fence, signal } = req.idempotency
  const seen: [string, number, boolean] = [key, fence, signal.aborted]
  signal.addEventListener('abort', () => {})
  res.json(seen)
})

// Beside the handler.
const ready: Promise<void> = guard.ready()
const state: 'cold' | 'fresh' | 'stale' | 'expired' = guard.health().keySet.state
guard.close()

export { ready, state }
