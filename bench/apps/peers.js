/* Each peer as its own documentation wires it, with the permission checked as ours checks it. */
import { JwtVerifier } from 'aws-jwt-verify'
import { getSharedIdempotencyService, idempotency } from 'express-idempotency'
import adapters from 'express-idempotency-redis-adapter'
import { expressjwt } from 'express-jwt'
import { auth, claimIncludes } from 'express-oauth2-jwt-bearer'
import { createVerifier } from 'fast-jwt'
import buildGetJwks from 'get-jwks'
import jwksRsa from 'jwks-rsa'
import { createOrder, readApp } from './handlers.js'
import { write } from './ours.js'

const addressOf = ({ issuer }) => `${issuer}/.well-known/jwks.json`

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

const bearer = (req) => req.headers.authorization.slice('Bearer '.length)

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

export async function awsJwtVerify(settings) {
  const { issuer } = settings
  const verifier = JwtVerifier.create({ issuer, audience: 'orders' })
  // It fetches over https only.
  verifier.cacheJwks(await (await fetch(addressOf(settings))).json())
  return readApp(
    verifiedBy((token) => verifier.verify(token)),
    readPermission,
  )
}

function fastJwtWith({ issuer }, options) {
  const getJwks = buildGetJwks({ issuersWhitelist: [issuer] })
  const verify = createVerifier({
    key: async ({ header: { kid, alg }, payload: { iss } }) =>
      getJwks.getPublicKey({ kid, domain: iss, alg }),
    algorithms: ['RS256'],
    allowedIss: issuer,
    allowedAud: 'orders',
    ...options,
  })
  return readApp(verifiedBy(verify), readPermission)
}

export const fastJwt = (settings) => fastJwtWith(settings, {})
export const fastJwtCached = (settings) => fastJwtWith(settings, { cache: true })

export async function expressIdempotency(settings) {
  const dataAdapter = new adapters.default({ connectionConfig: { url: settings.redisUrl } })
  await dataAdapter.connect()
  const runOnce = (req, _res, next) => {
    if (!getSharedIdempotencyService().isHit(req)) next()
  }
  return write(settings, idempotency({ dataAdapter }), runOnce, createOrder)
}
