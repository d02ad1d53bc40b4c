import { compare } from '../compare.js'
import { versionOf } from '../table.js'

const read = (pool) => [{ kind: 'read', pool, status: 200 }]

const BARE = { label: 'bare Express', app: 'bareRead' }
const OAUTH2 = peer('oauth2JwtBearer', 'express-oauth2-jwt-bearer')
const EXPRESS_JWT = peer('expressJwt', 'express-jwt', 'jwks-rsa')
const AWS = peer('awsJwtVerify', 'aws-jwt-verify')
const FAST = peer('fastJwt', 'fast-jwt', 'get-jwks')
const FAST_CACHED = { ...FAST, app: 'fastJwtCached', label: `${FAST.label}, cached` }

/** A read behind `serviceAuth` and `requirePermissions`, and behind other ways to verify a token. */
export async function tokens(bench) {
  await compareReads(bench, 'few', 'reads, few tokens', [
    { ...BARE, aim: 0.93 },
    { ...OAUTH2, aim: 3.3 },
    EXPRESS_JWT,
    AWS,
    FAST,
    { ...FAST_CACHED, aim: 1.0 },
  ])
  await compareReads(bench, 'fresh', 'reads, every token new', [
    BARE,
    { label: 'bare and one verification by hand', app: 'verifyByHand', aim: 0.88 },
    { ...OAUTH2, aim: 1.1 },
    EXPRESS_JWT,
    AWS,
    FAST,
    FAST_CACHED,
  ])
}

function compareReads(bench, pool, title, others) {
  const requests = read(pool)
  return compare(bench, {
    title,
    ours: { label: 'serviceAuth', app: 'read', requests },
    others: others.map((other) => ({ ...other, requests })),
  })
}

function peer(app, ...packages) {
  return { app, label: packages.map(versionOf).join(' + '), isPeer: true }
}
