import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { hash } from '../../base/supported-node.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { es256, type Signer } from '../issuer/compact-token.js'
import { keyRingOf, type TestIssuer } from '../issuer/issuer.js'
import { type Draft, type Drafts, type HostileProof, nameOf, type ProofForge } from './forge.js'

/** Rightly signed proofs that are for another request, time or token. */
export const proofPayloadCases = (forge: ProofForge): HostileProof[] =>
  forge.groups({
    'A proof has each member once, with its type': memberCases(forge),
    'The method is that of the request, to the letter': methodCases(forge),
    'The URI is that of the request, and only normalised': addressCases(forge),
    'A proof is at most 60 s old and 30 s ahead': timeCases(forge),
    'A proof is for one token': tokenCases(forge),
  })

function memberCases({ claims, claimDrafts, withRawClaim, token }: ProofForge): Draft[] {
  const wrong = [undefined, null, true, ['x'], { toString: 'x' }]
  const twice = (claim: string, value: unknown): Draft => {
    const [first, last] = [claims[claim], value].map((each) => JSON.stringify(each))
    return [`${claim} twice, the last wrong`, withRawClaim(claim, `${first},"${claim}":${last}`)]
  }
  return [
    ...['htm', 'htu', 'iat', 'jti', 'ath'].flatMap((claim) => claimDrafts(claim, wrong)),
    ...claimDrafts('jti', { empty: '', 'of 257 characters': 'j'.repeat(257), 'a number': 5 }),
    twice('htm', 'BREW'),
    twice('htu', 'https://attacker.test/'),
    twice('iat', 1),
    twice('jti', ''),
    twice('ath', 'x'),
    ['a payload that is a list', token({ payload: '[]' })],
    ['a payload that is null', token({ payload: 'null' })],
    ['a payload that is no JSON', token({ payload: 'x' })],
    ['a payload with a byte order mark', token({ payload: `\ufeff${JSON.stringify(claims)}` })],
  ]
}

function methodCases({ method, claimDrafts }: ProofForge): Draft[] {
  const others = [method === 'GET' ? 'HEAD' : 'GET', method.toLowerCase(), `${method} `, '', '*']
  return claimDrafts('htm', others)
}

function addressCases({ baseUrl, path, url, claimDrafts }: ProofForge): Draft[] {
  const [scheme = '', rest = ''] = baseUrl.split('://')
  const [authority = ''] = rest.split('/')
  const prefix = rest.slice(authority.length)
  const [host = '', port] = authority.split(/:(?=\d+$)/)
  const at = (origin: string): string => `${origin}${prefix}${path}`
  const letter = path.search(/[a-z]/)
  const otherCase =
    path.slice(0, letter) + path.charAt(letter).toUpperCase() + path.slice(letter + 1)
  const addresses = {
    'another origin': at('https://attacker.test'),
    'the other scheme': at(`${scheme === 'https' ? 'http' : 'https'}://${authority}`),
    'another port': at(`${scheme}://${host}:${Number(port ?? 443) + 1}`),
    'the port with a zero in front': at(
      `${scheme}://${host}:0${port ?? (scheme === 'https' ? 443 : 80)}`,
    ),
    'a port that is none': at(`${scheme}://${host}:x`),
    'a longer host': at(`${scheme}://${host}.attacker.test`),
    'a host with a trailing dot': at(`${scheme}://${host}.${port === undefined ? '' : `:${port}`}`),
    'a user name': at(`${scheme}://user@${authority}`),
    'the host as a user name': at(`${scheme}://${authority}@attacker.test`),
    'an empty user name': at(`${scheme}://@${authority}`),
    'an empty host': at(`${scheme}://`),
    'no scheme': at(`//${authority}`),
    'the path alone': `${prefix}${path}`,
    'another scheme': at(`ws://${authority}`),
    'one slash': at(`${scheme}:/${authority}`),
    backslashes: `${scheme}:\\\\${authority}${`${prefix}${path}`.replaceAll('/', '\\')}`,
    'a backslash in the path': `${url}\\`,
    'another path': `${url}x`,
    'the path in other case': `${baseUrl}${otherCase}`,
    'a trailing slash': `${url}/`,
    'a slash more': `${baseUrl}/${path}`,
    'a prefix more': `${baseUrl}/api${path}`,
    'only the base URL': baseUrl,
    'a dot segment that leads elsewhere': `${url}/..`,
    'a dot segment at the end': `${url}/.`,
    'dot segments in percent form': `${url}/%2e%2e`,
    'a slash in percent form': `${baseUrl}/${path.slice(1).replace('/', '%2F')}%2F`,
    'a percent sign that is encoded twice': `${baseUrl}${path.slice(0, -1)}%25${path.slice(-1).charCodeAt(0).toString(16)}`,
    'a percent sign alone': `${url}%`,
    'a malformed percent form': `${url}%zz`,
    'a query in percent form': `${url}%3Fa=1`,
    'a matrix parameter': `${url};a=1`,
    'white space before it': ` ${url}`,
    'white space behind it': `${url} `,
    'a tab in it': `${baseUrl}\t${path}`,
    'a line break behind it': `${url}\n`,
    'a NUL behind it': `${url}\u0000`,
    'a character beyond ASCII': `${url}\u00e9`,
    'an empty text': '',
  }
  return claimDrafts('htu', addresses)
}

function timeCases({ claims, claimDrafts, withClaims }: ProofForge): Draft[] {
  const now = Number(claims['iat'])
  const times = {
    'two minutes old': now - 120,
    'two minutes ahead': now + 120,
    'a day old': now - 86_400,
    'a day ahead': now + 86_400,
    zero: 0,
    negative: -now,
    'in milliseconds': now * 1000,
    'as text': String(now),
  }
  return [
    ...claimDrafts('iat', times),
    ['iat old, with exp and nbf that hold', withClaims({ iat: now - 120, nbf: 0, exp: now + 900 })],
  ]
}

function tokenCases({ boundToken, unboundToken, claimDrafts }: ProofForge): Draft[] {
  const digest = (text: string, algorithm = 'sha256') => hash(algorithm, text, 'base64url')
  const values = {
    "another token's": digest(unboundToken),
    'that of no token': digest(''),
    'of the scheme and the token': digest(`DPoP ${boundToken}`),
    'with padding': `${digest(boundToken)}=`,
    'in base64': hash('sha256', boundToken, 'base64'),
    'in hexadecimal': hash('sha256', boundToken, 'hex'),
    'the left half': digest(boundToken).slice(0, 22),
    'SHA-512': digest(boundToken, 'sha512'),
    'the token itself': boundToken.slice(0, 1024),
  }
  return claimDrafts('ath', values)
}

/** Proofs whose header is wrong, or whose signature is not by the key in it. */
export function proofHeaderCases(
  forge: ProofForge,
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): HostileProof[] {
  return forge.groups({
    'The type is exactly dpop+jwt': typeCases(forge),
    'The algorithm is exactly ES256': algorithmCases(forge, issuer),
    'The key is the public P-256 key of the token': keyCases(forge),
    'Nothing in the header changes how the proof is read': [
      ['crit of exp', forge.withHeader({ crit: ['exp'], exp: 1 })],
      ['crit of b64', forge.withHeader({ crit: ['b64'], b64: true })],
      ...forge.headerDrafts('crit', [[], null]),
    ],
    'The signature covers header and payload, to the bit': signatureCases(forge),
  })
}

function typeCases({ header, headerDrafts, token }: ProofForge): Draft[] {
  const values = [undefined, null, '', 5, ['dpop+jwt'], 'JWT', 'at+jwt', 'DPoP+JWT', 'dpop+jwt ']
  const rest = JSON.stringify({ ...header, typ: undefined }).slice(1)
  return [
    ...headerDrafts('typ', [...values, 'application/dpop+jwt']),
    ['typ twice, the last wrong', token({ header: `{"typ":"dpop+jwt","typ":"JWT",${rest}` })],
  ]
}

function algorithmCases(
  { header, headerDrafts, key, withHeader, token }: ProofForge,
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): Draft[] {
  const values = [undefined, null, '', 256, ['ES256'], 'es256', 'ES384', 'ES256K', 'EdDSA', 'PS256']
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' })
  const rsa = keyRingOf(issuer).current().privateKey
  const signedBy = (alg: string, signer: Signer): string =>
    token({ header: { ...header, alg }, signer })
  const hmac =
    (secret: string | Buffer): Signer =>
    (input) =>
      createHmac('sha256', secret).update(input).digest()
  return [
    ...headerDrafts('alg', values),
    ...Object.entries({
      'alg twice, the last wrong': token({
        header: `{"typ":"dpop+jwt","alg":"ES256","alg":"none","jwk":${JSON.stringify(key.jwk)}}`,
      }),
      'alg none': signedBy('none', () => Buffer.alloc(64)),
      'alg None with a good signature': withHeader({ alg: 'None' }),
      'RS256 by the key of the issuer': signedBy('RS256', (input) => sign('sha256', input, rsa)),
      'RS256 that says ES256': signedBy('ES256', (input) => sign('sha256', input, rsa)),
      'HS256 with the PEM of the public key': signedBy('HS256', hmac(String(pem))),
      'HS256 with the public key as JWK': signedBy('HS256', hmac(JSON.stringify(key.jwk))),
      'HS256 with the DER of the public key': signedBy(
        'HS256',
        hmac(key.publicKey.export({ type: 'spki', format: 'der' })),
      ),
      'HS256 with an empty secret': signedBy('HS256', hmac('')),
    }),
  ]
}

function keyCases({ header, headerDrafts, key, attacker, withHeader, token }: ProofForge): Draft[] {
  const { jwk } = key
  const { d } = key.privateKey.export({ format: 'jwk' })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const otherJwk = other.publicKey.export({ format: 'jwk' })
  const rsaJwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
    format: 'jwk',
  })
  const changed = (member: string, value: unknown): Draft => [
    nameOf(`jwk with ${member}`, value),
    withHeader({ jwk: { ...jwk, [member]: value } }),
  ]
  const offCurve = Buffer.from(jwk.y, 'base64url')
  offCurve.writeUInt8(offCurve.readUInt8(31) ^ 1, 31)
  return [
    ...headerDrafts('jwk', [undefined, null, '', 5, [], {}]),
    ...headerDrafts('jwk', { 'in a list': [jwk], 'as text': JSON.stringify(jwk) }),
    ...[undefined, null, 'RSA', 'oct', 'ec', 5].map((kty) => changed('kty', kty)),
    ...[undefined, null, 'P-384', 'secp256k1', 'p-256', 5].map((crv) => changed('crv', crv)),
    ...[undefined, null, '', 5, `${jwk.x}=`, `A${jwk.x}`].map((x) => changed('x', x)),
    ...[undefined, null, '', 5, attacker.jwk.y, offCurve.toString('base64url')].map((y) =>
      changed('y', y),
    ),
    ...Object.entries({
      'jwk with the private member d': withHeader({ jwk: { ...jwk, d } }),
      'jwk with d null': withHeader({ jwk: { ...jwk, d: null } }),
      'jwk with the symmetric member k': withHeader({ jwk: { ...jwk, k: 'AAAA' } }),
      'a key of another curve': token({
        header: { ...header, jwk: otherJwk },
        signer: es256(other.privateKey),
      }),
      'an RSA key': withHeader({ jwk: rsaJwk }),
      'the key of a stranger, who has signed': token({
        header: { ...header, jwk: attacker.jwk },
        signer: es256(attacker.privateKey),
      }),
      'the key of a stranger, signed by the right one': withHeader({ jwk: attacker.jwk }),
      'kid in place of jwk': withHeader({ jwk: undefined, kid: key.thumbprint }),
      'jwk twice, the last that of a stranger': token({
        header: `{"typ":"dpop+jwt","alg":"ES256","jwk":${JSON.stringify(jwk)},"jwk":${JSON.stringify(attacker.jwk)}}`,
      }),
    }),
  ]
}

function signatureCases({ attacker, key, token, proofFor }: ProofForge): Drafts {
  const signer = es256(key.privateKey)
  const altered = (alter: (signature: Buffer) => Uint8Array): string =>
    token({ signer: (input) => alter(Buffer.from(signer(input))) })
  const [header, payload] = proofFor().split('.')
  const [, otherPayload, otherSignature] = proofFor().split('.')
  const unsigned = `${header}.${payload}`
  return {
    'by a stranger, with the right key beside it': token({ signer: es256(attacker.privateKey) }),
    'in DER': token({ signer: (input) => sign('sha256', input, key.privateKey) }),
    'with SHA-384': token({
      signer: (input) => sign('sha384', input, { key: key.privateKey, dsaEncoding: 'ieee-p1363' }),
    }),
    'all zero': altered(() => Buffer.alloc(64)),
    'one byte short': altered((signature) => signature.subarray(1)),
    'one byte more': altered((signature) => Buffer.concat([signature, Buffer.of(0)])),
    'a bit flipped': altered((signature) => signature.fill(signature.readUInt8(9) ^ 1, 9, 10)),
    'both halves exchanged': altered((s) => Buffer.concat([s.subarray(32), s.subarray(0, 32)])),
    "another proof's signature": `${unsigned}.${otherSignature}`,
    "another proof's payload": `${header}.${otherPayload}.${otherSignature?.slice(0, -4)}AAAA`,
  }
}
