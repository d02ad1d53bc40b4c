import { makeClientCertificates } from '../../test/support/tls/client-certificates.js'
import { createProofKey } from '../issuer.js'
import { compare, versionOf } from '../table.js'

const FEW = 10
const BASE_URL = 'http://orders'

const read = (pool) => ({ request: { kind: 'read', pool, status: 200 } })

const BARE = { label: 'bare Express', app: 'ours/bareRead' }
const OAUTH2 = { label: versionOf('express-oauth2-jwt-bearer'), app: 'peers/oauth2JwtBearer' }
const EXPRESS_JWT = { label: versionOf('express-jwt'), app: 'peers/expressJwt' }

/** A read behind `serviceAuth` and `requirePermissions`, and behind other ways to verify a token. */
export async function tokens(bench) {
  await compareReads(bench, 'few', 'cached read', [
    { label: 'two empty middlewares', app: 'peers/emptyMiddlewares', goal: 0.9 },
    { ...BARE, goal: 0.8 },
    { ...OAUTH2, goal: 3.2 },
    { ...EXPRESS_JWT, goal: 3.9 },
    { label: `${versionOf('fast-jwt')}, cached`, app: 'peers/fastJwtCached', goal: 1.15 },
  ])
  await compareReads(bench, 'fresh', 'every token new', [
    { label: 'bare and one compactVerify', app: 'peers/compactVerifyByHand', goal: 0.8 },
    { ...OAUTH2, goal: 1 },
    EXPRESS_JWT,
  ])
  await compareProofs(bench)
  await compareCertificates(bench)
}

const compareReads = (bench, pool, label, others) =>
  compare(bench, {
    ours: { label, app: 'ours/read', ...read(pool) },
    others: others.map((other) => ({ ...other, ...read(pool) })),
  })

async function compareProofs(bench) {
  const keys = Array.from({ length: FEW }, createProofKey)
  const bound = await bench.issuer.mint(FEW, (index) => ({ cnf: { jkt: keys[index].jkt } }))
  bench.load.pools.proved = bound.map((token, index) => ({ token, key: keys[index] }))
  const dpop = { enabled: true, required: true }
  await compare(bench, {
    ours: {
      label: 'read with a DPoP proof',
      app: 'ours/read',
      settings: { senderConstraint: { dpop: { baseUrls: [BASE_URL] } } },
      ...read('proved'),
    },
    others: [{ ...OAUTH2, settings: { dpop }, ...read('proved'), goal: 1.5 }],
  })
}

async function compareCertificates(bench) {
  const { ca, server, client } = await makeClientCertificates()
  const cnf = { 'x5t#S256': client.thumbprint }
  bench.load.pools.certified = await bench.issuer.mint(FEW, () => ({ cnf }))
  const tls = { cert: server.cert, key: server.key }
  await compare(bench, {
    ours: {
      label: 'read bound to a client certificate',
      app: 'ours/read',
      settings: { senderConstraint: { mtls: true }, tls: { ...tls, ca, requestCert: true } },
      tls: { ca, cert: client.cert, key: client.key },
      ...read('certified'),
    },
    others: [
      {
        label: 'unbound over TLS',
        app: 'ours/read',
        settings: { tls },
        tls: { ca },
        ...read('few'),
        goal: 0.97,
      },
    ],
  })
}
