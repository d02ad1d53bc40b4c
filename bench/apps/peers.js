/* Each peer as its own documentation wires it, with the permission checked as ours checks it; and what is written by hand. */
import { createRequire } from 'node:module'
import { getSharedIdempotencyService, idempotency } from 'express-idempotency'
import adapters from 'express-idempotency-redis-adapter'
import { expressjwt } from 'express-jwt'
import { auth, claimIncludes } from 'express-oauth2-jwt-bearer'
import { createVerifier } from 'fast-jwt'
import buildGetJwks from 'get-jwks'
import { Redis } from 'ioredis'
import jwksRsa from 'jwks-rsa'
import { createOrder, orderOf, readApp } from './handlers.js'
import { write } from './ours.js'

const addressOf = ({ issuer }) => `${issuer}/.well-known/jwks.json`
const bearer = (req) => req.headers.authorization.slice('Bearer '.length)

export const oauth2JwtBearer = (settings) =>
  readApp(
    auth({
      issuer: settings.issuer,
      jwksUri: addressOf(settings),
      audience: 'orders',
      tokenSigningAlg: 'RS256',
      dpop: settings.dpop,
    }),
    claimIncludes('permissions', 'orders:read'),
  )

function readPermission(req, res, next) {
  if (req.auth.permissions.includes('orders:read')) next()
  else res.sendStatus(403)
}

export const expressJwt = (settings) =>
  readApp(
    expressjwt({
      secret: jwksRsa.expressJwtSecret({
        cache: true,
        rateLimit: true,
        jwksRequestsPerMinute: 5,
        jwksUri: addressOf(settings),
      }),
      audience: 'orders',
      issuer: settings.issuer,
      algorithms: ['RS256'],
    }),
    readPermission,
  )

/** Express awaits a rejected promise by itself; these verifiers are no middleware of their own. */
const verifiedBy = (verify) => async (req, res, next) => {
  try {
    req.auth = await verify(bearer(req))
  } catch {
    res.sendStatus(401)
    return
  }
  next()
}

export function fastJwtCached({ issuer }) {
  const getJwks = buildGetJwks({ issuersWhitelist: [issuer] })
  const verify = createVerifier({
    key: async ({ header: { kid, alg }, payload: { iss } }) =>
      getJwks.getPublicKey({ kid, domain: iss, alg }),
    algorithms: ['RS256'],
    allowedIss: issuer,
    allowedAud: 'orders',
    cache: true,
  })
  return readApp(verifiedBy(verify), readPermission)
}

export async function expressIdempotency(settings) {
  const dataAdapter = new adapters.default({ connectionConfig: { url: settings.redisUrl } })
  await dataAdapter.connect()
  const runOnce = (req, _res, next) => {
    if (!getSharedIdempotencyService().isHit(req)) next()
  }
  return write(settings, idempotency({ dataAdapter }), runOnce, createOrder)
}

/** Two middlewares that do nothing, where `serviceAuth` and `requirePermissions` stand. */
export const emptyMiddlewares = () =>
  readApp(
    (_req, _res, next) => next(),
    (_req, _res, next) => next(),
  )

/** The least that a read with a new token can be: one `compactVerify` of the package's own jose, and a look at the claims. */
export async function compactVerifyByHand({ build, issuer }) {
  const jose = await import(createRequire(new URL('package.json', build)).resolve('jose'))
  const { keys } = await (await fetch(addressOf({ issuer }))).json()
  const entries = keys.map(async (key) => [key.kid, await jose.importJWK(key, 'RS256')])
  const keyOf = new Map(await Promise.all(entries))
  async function verify(token) {
    const { payload } = await jose.compactVerify(token, ({ kid }) => keyOf.get(kid), {
      algorithms: ['RS256'],
    })
    const claims = JSON.parse(Buffer.from(payload).toString())
    const { iss, aud, exp } = claims
    if (iss !== issuer || aud !== 'orders' || !(exp > Date.now() / 1000)) throw new Error('claims')
    return claims
  }
  return readApp(verifiedBy(verify), readPermission)
}

const LEASE_MS = 60_000
const RETENTION_MS = 86_400_000

/**
 * The floor of an idempotent write: the key is taken, then the result is kept. It checks no fingerprint, replays
 * nothing and does not notice that its lease has ended.
 */
export function writeByHand(settings) {
  const redis = new Redis(settings.redisUrl)
  return write(settings, async (req, res) => {
    const key = `by-hand:${req.headers['idempotency-key']}`
    const taken = await redis.set(key, 'running', 'PX', LEASE_MS, 'NX')
    if (taken === null) {
      res.sendStatus(409)
      return
    }
    const order = orderOf(req.body)
    await redis.set(key, JSON.stringify(order), 'PX', RETENTION_MS)
    res.status(201).json(order)
  })
}
