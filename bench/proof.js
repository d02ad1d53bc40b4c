import { createPrivateKey, generateKeyPairSync, hash, randomUUID, sign } from 'node:crypto'

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A key of a caller, as JSON: its thumbprint (RFC 7638), and what its proofs are made with. */
export function createProofKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { crv, kty, x, y } = publicKey.export({ format: 'jwk' })
  const jwk = { crv, kty, x, y }
  return {
    jkt: hash('sha256', JSON.stringify(jwk), 'base64url'),
    header: encode({ typ: 'dpop+jwt', alg: 'ES256', jwk }),
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
}

/** A DPoP proof of the key for one request with this token (RFC 9449, section 4.2). */
export function createProof(key, token, { method, url }) {
  key.signing ??= { key: createPrivateKey(key.pem), dsaEncoding: 'ieee-p1363' }
  const iat = Math.floor(Date.now() / 1000)
  const ath = hash('sha256', token, 'base64url')
  const input = `${key.header}.${encode({ jti: randomUUID(), htm: method, htu: url, iat, ath })}`
  return `${input}.${sign('sha256', Buffer.from(input), key.signing).toString('base64url')}`
}
