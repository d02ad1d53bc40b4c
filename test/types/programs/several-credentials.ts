// Endpoints that take sessions too: the handler knows by type which credential it has.
import express, {
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import {
  type AcceptOneOf,
  acceptOneOf,
  type Choice,
  type FrontendSession,
  requirePermissions,
  type ServiceIdentity,
  serviceAuth,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'

/** As the backend SDK declares its verifier. */
interface SessionContainer {
  getHandle(userContext?: Record<string, unknown>): string
  getUserId(userContext?: Record<string, unknown>): string
  revokeSession(userContext?: Record<string, unknown>): Promise<void>
}
interface SessionRequest extends Request {
  session?: SessionContainer
}
declare function verifySession(options?: {
  sessionRequired?: boolean
}): (req: SessionRequest, res: Response, next: NextFunction) => Promise<void>

const auth = serviceAuth({
  issuer: 'https://api.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
})

const gate = acceptOneOf(
  [
    {
      name: 'service',
      ...serviceCredential(auth),
      authorize: [requirePermissions('orders:read'), requirePermissions('orders:write')],
    },
    { name: 'user', ...sessionCredential(verifySession()) },
  ],
  { onDecision: (event) => console.log(event.by, event.credential) },
)
const app = express()
app.use(gate)
app.get('/orders/:id', gate, (req, res) => {
  const id: string = req.params.id
  const credential = gate.credentialOf(req)
  const name: 'service' | 'user' = credential.name
  if (credential.name === 'service') {
    const service: ServiceIdentity = credential.identity
    // @ts-expect-error a service has no user
    credential.identity.getUserId()
    res.json({ id, name, by: service.name })
  } else {
    const session: SessionContainer = credential.identity
    // @ts-expect-error a session has no permissions
    credential.identity.permissions.has('orders:read')
    res.json({ id, name, by: session.getUserId() })
  }
  // @ts-expect-error which one it is has not been asked
  credential.identity.getUserId()
  // @ts-expect-error there is no such credential
  if (credential.name === 'session') return
  // @ts-expect-error read-only
  credential.name = 'user'
  // @ts-expect-error the property knows no types
  req.credential?.identity.getUserId()
  // @ts-expect-error there is none before acceptOneOf has run
  req.credential.name
  const shown: unknown = req.credential?.identity
  return shown
})

// A serviceAuth as verifier brings its identity; other choices name theirs.
const apiKey = {
  name: 'key' as const,
  presented: (req: Request) => req.headers['x-api-key'] !== undefined,
  verify: ((_req, _res, next) => next()) satisfies RequestHandler,
  identity: (req: Request) => (req.headers['x-api-key'] === 'k' ? { owner: 'ops' } : undefined),
}
const presented = (): boolean => true
const mixed = acceptOneOf([{ name: 'service', presented, verify: auth }, apiKey])
app.get('/mixed', mixed, (req, res) => {
  const credential = mixed.credentialOf(req)
  const by: string =
    credential.name === 'key' ? credential.identity.owner : credential.identity.name
  res.json({ by })
})

// The type of a session is its verifier's, or what identity gives, or at least a handle.
const plain: RequestHandler = (_req, _res, next) => next()
const least: FrontendSession = sessionCredential(plain).identity({} as Request)
const users = sessionCredential(plain, { cookie: 'session', identity: () => 'user-1' })
const userId: string = users.identity({} as Request)
const typed: AcceptOneOf<{ readonly name: 'user'; readonly identity: string }> = acceptOneOf([
  { name: 'user', ...users },
])

class OfClass implements Choice<number> {
  readonly name = 'class'
  readonly verify = plain
  presented(): boolean {
    return true
  }
  identity(): number {
    return 7
  }
}
const seven: number = acceptOneOf([new OfClass()]).credentialOf({} as Request).identity

// What must not compile.
// @ts-expect-error no choice
acceptOneOf([])
// @ts-expect-error a list
acceptOneOf(apiKey)
// @ts-expect-error a choice has a name
acceptOneOf([serviceCredential(auth)])
// @ts-expect-error a choice says when it is presented
acceptOneOf([{ name: 'service', verify: auth }])
// @ts-expect-error a choice has a verifier
acceptOneOf([{ name: 'key', presented, identity: () => 'ops' }])
// @ts-expect-error whose credential it is, only a serviceAuth says by itself
acceptOneOf([{ name: 'key', presented, verify: plain }])
// @ts-expect-error presented does not wait
acceptOneOf([{ ...apiKey, presented: async () => true }])
// @ts-expect-error nobody waits for an identity
acceptOneOf([{ ...apiKey, identity: async () => 'ops' }])
// @ts-expect-error handlers
acceptOneOf([{ ...apiKey, authorize: 'orders:read' }])
// @ts-expect-error an unknown option
acceptOneOf([apiKey], { log: true })
// @ts-expect-error the request is required
gate.credentialOf()
// @ts-expect-error only a serviceAuth
serviceCredential(plain)
// @ts-expect-error an unknown option
sessionCredential(plain, { cookieName: 'session' })
// @ts-expect-error a list of key ids
sessionCredential(plain, { denylist: { keys: 'd-1' } })
// @ts-expect-error nobody waits for an identity
sessionCredential(plain, { identity: async () => 'user-1' })

export { least, seven, typed, userId }
