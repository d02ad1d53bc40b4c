import { tsImport } from 'tsx/esm/api'
import { compare } from '../compare.js'
import { claims } from '../issuer.js'
import { createProofKey } from '../proof.js'
import { versionOf } from '../table.js'
import { boundWrites } from './bound-writes.js'

const FEW = 10
const BASE_URL = 'http://orders'

const read = (pool) => [{ kind: 'read', pool, status: 200 }]

/** What it costs that a token works for its caller only: by a proof of its key, by a certificate. */
export async function bound(bench) {
  await proofs(bench)
  await certificates(bench)
  await boundWrites(bench)
}

async function proofs(bench) {
  const keys = Array.from({ length: FEW }, createProofKey)
  const tokens = await mintBound(
    bench,
    keys.map(({ jkt }) => ({ jkt })),
  )
  const proved = tokens.map((token, index) => ({ token, key: keys[index] }))
  await bench.load.ask({ pools: { proved } })
  const requests = read('proved')
  const settings = { senderConstraint: { dpop: { baseUrls: [BASE_URL] } } }
  await compare(bench, {
    title: 'reads, few tokens, each with a new proof',
    ours: { label: 'serviceAuth with dpop', app: 'read', settings, requests },
    others: [
      {
        label: `${versionOf('express-oauth2-jwt-bearer')} with dpop`,
        app: 'oauth2JwtBearer',
        settings: { dpop: { enabled: true, required: true } },
        isPeer: true,
        requests,
        aim: 1.3,
      },
      { label: 'serviceAuth, unbound tokens', app: 'read', requests: read('few') },
    ],
  })
}

async function certificates(bench) {
  const { makeClientCertificates } = await tsImport(
    '../../test/support/tls/client-certificates.ts',
    import.meta.url,
  )
  const { ca, server, client } = await makeClientCertificates()
  const cnfs = Array.from({ length: FEW }, () => ({ 'x5t#S256': client.thumbprint }))
  await bench.load.ask({ pools: { certified: await mintBound(bench, cnfs) } })
  const tls = { cert: server.cert, key: server.key }
  const askingTls = { ...tls, ca, requestCert: true }
  await compare(bench, {
    title: 'reads, few tokens, over TLS',
    ours: {
      label: 'bound to the client certificate',
      app: 'read',
      settings: { senderConstraint: { mtls: true }, tls: askingTls },
      tls: { ca, cert: client.cert, key: client.key },
      requests: read('certified'),
    },
    others: [
      {
        label: 'unbound, no client certificate',
        app: 'read',
        settings: { tls },
        tls: { ca },
        requests: read('few'),
        aim: 0.97,
      },
    ],
  })
}

/** A token bound to each of these. */
function mintBound({ issuer }, cnfs) {
  let next = 0
  return issuer.mint(cnfs.length, (iss) => ({ ...claims(iss), cnf: cnfs[next++] }))
}
