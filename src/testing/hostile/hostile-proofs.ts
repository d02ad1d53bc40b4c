import { generateKeyPairSync, sign } from 'node:crypto'
import { hash } from '../../base/supported-node.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import type { ProofKey } from '../issuer/bound-token.js'
import { es256, type Signer } from '../issuer/compact-token.js'
import type { TestIssuer } from '../issuer/issuer.js'
import {
  alteredSignatures,
  type Draft,
  type Drafts,
  malformedParts,
  nameOf,
  publicSecrets,
} from './forge.js'
import {
  BASE_URL,
  createProofForge,
  type HostileProof,
  PATH,
  type ProofForge,
  URL_OF_REQUEST,
} from './proof-forge.js'

/**
 * Returns requests `POST https://orders.test/orders/4711` with tokens that are bound to a key (DPoP), which a receiver
 * with `senderConstraint.dpop` must refuse. Its `baseUrls` must contain `https://orders.test`. Send them within a
 * minute: their proofs are made now.
 *
 * @throws TypeError if the issuer was not made by `createTestIssuer`.
 *
 * @example
 * ```ts
 * import { serviceAuth } from 'express-service-auth'
 * import { createTestIssuer, hostileProofs } from 'express-service-auth/testing'
 *
 * const issuer = await createTestIssuer()
 * const senderConstraint = { dpop: { baseUrls: ['https://orders.test'] } }
 * const auth = serviceAuth(issuer.policy({ senderConstraint }))
 * for (const { name, method, target, headers, replays } of hostileProofs(issuer)) {
 *   if (replays !== undefined) continue
 *   const answer = await auth.authenticate({ rawHeaders: headers }, { method, url: target })
 *   if (answer.outcome === 'accepted') throw new Error(name)
 * }
 * await issuer.close()
 * ```
 */
export function hostileProofs(
  issuer: TestIssuer<ServiceAuthPolicy | OAuth2Policy>,
): HostileProof[] {
  const forge = createProofForge(issuer)
  return [
    ...headerCases(forge),
    ...payloadCases(forge),
    ...fieldCases(forge),
    ...schemeCases(forge),
    ...targetCases(forge),
    ...requests(forge, 'A proof is accepted once where single use is required', {
      'a proof that was used before': { replays: 'here' },
      'a proof that was used at another instance': { replays: 'elsewhere' },
    }),
  ]
}

/** Requests that are wrong as a whole, by what they change of a good one. */
const requests = (
  forge: ProofForge,
  why: string,
  changes: Readonly<Record<string, Partial<HostileProof>>>,
): HostileProof[] =>
  Object.entries(changes).flatMap(([name, changed]) =>
    forge.groups({ [why]: { [name]: forge.proofFor() } }, changed),
  )

const named = <T>(
  place: string,
  values: Readonly<Record<string, T>>,
  change: (value: T) => Partial<HostileProof>,
): Record<string, Partial<HostileProof>> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`${place}: ${name}`, change(value)]),
  )

function fieldCases(forge: ProofForge): HostileProof[] {
  const { boundToken, proofFor, withHeader, token } = forge
  const good = proofFor()
  const long = withHeader({ more: 'x'.repeat(4096) })
  const [header, payload, signature] = good.split('.')
  const fields: Readonly<Record<string, readonly string[]>> = {
    'no proof': [],
    'an empty proof': [''],
    'two fields with the same proof': [good, good],
    'two fields with two good proofs': [proofFor(), proofFor()],
    'a good proof and an empty field': [good, ''],
    'a list of two proofs': [`${proofFor()}, ${proofFor()}`],
    'a proof over 4 KB': [long],
    'a scheme before it': [`DPoP ${good}`],
    'quotes around it': [`"${good}"`],
    'two segments': [`${header}.${payload}`],
    'four segments': [`${good}.${signature}`],
    padding: [`${good}=`],
    'the token itself': [boundToken],
    'an empty header': [token({ header: '' })],
    'JSON in place of a JWS': ['{"htm":"GET"}'],
  }
  const change = (proofs: readonly string[]) => ({ headers: forge.headersWith(...proofs) })
  const why = 'A proof is one field of at most 4 KB with a JWS'
  return requests(forge, why, named('DPoP', fields, change))
}

function schemeCases(forge: ProofForge): HostileProof[] {
  const { boundToken: token, unboundToken, proofFor } = forge
  const values: Readonly<Record<string, readonly string[]>> = {
    'a bound token as Bearer': [`Bearer ${token}`, 'DPoP', proofFor()],
    'a bound token as Bearer, without a proof': [`Bearer ${token}`],
    'a bound token as BEARER': [`BEARER ${token}`, 'DPoP', proofFor()],
    'an unbound token as DPoP': [`DPoP ${unboundToken}`, 'DPoP', proofFor()],
    'an unbound token as DPoP, without a proof': [`DPoP ${unboundToken}`],
    'two blanks': [`DPoP  ${token}`, 'DPoP', proofFor()],
    'no blank': [`DPoP${token}`, 'DPoP', proofFor()],
    'both schemes in one field': [`Bearer ${token}, DPoP ${token}`, 'DPoP', proofFor()],
    'both schemes in two fields': [
      `DPoP ${token}`,
      ...['Authorization', `Bearer ${token}`],
      ...['DPoP', proofFor()],
    ],
    'a proof as the token': [`DPoP ${proofFor()}`, 'DPoP', proofFor()],
  }
  const change = (headers: readonly string[]) => ({ headers: ['Authorization', ...headers] })
  const why = 'A bound token goes with DPoP, an unbound one with Bearer'
  return requests(forge, why, named('Authorization', values, change))
}

const ONE_URI = 'The URI is that of the request, and only normalised'
const ELSEWHERE = `https://attacker.test${PATH}`

function targetCases(forge: ProofForge): HostileProof[] {
  const { proofFor, headersWith } = forge
  const headers = headersWith(proofFor())
  const targets = {
    'another path': `${PATH}x`,
    'a path that begins with two slashes': `/${PATH}`,
    'an absolute target with another path': `${URL_OF_REQUEST}x`,
    "an absolute target with the URI's path in its query": `${BASE_URL}/?${PATH}`,
    'a trailing slash': `${PATH}/`,
    'a percent sign that is encoded twice': `${PATH}%2525`,
  }
  return requests(forge, ONE_URI, {
    ...named('target', targets, (target) => ({ target, headers })),
    'target: the origin in the path': {
      headers: headersWith(proofFor('https://attacker.test/x')),
      target: '//attacker.test/x',
    },
    'target: an absolute one with another origin, which the proof has': {
      headers: headersWith(proofFor(ELSEWHERE)),
      target: ELSEWHERE,
    },
    'Host and X-Forwarded fields that the proof agrees with': {
      headers: [
        ...headersWith(proofFor(ELSEWHERE)),
        ...['X-Forwarded-Host', 'attacker.test', 'X-Forwarded-Proto', 'https'],
        ...['Forwarded', 'host=attacker.test;proto=https', 'X-Original-URL', PATH],
      ],
    },
  })
}

/** Correctly signed proofs that are for another request, time or token. */
const payloadCases = (forge: ProofForge): HostileProof[] =>
  forge.groups({
    'A proof has each member once, with its type': memberCases(forge),
    'Header and payload are JSON objects in UTF-8': malformedParts(forge),
    'The method is that of the request, to the letter': forge.claimDrafts('htm', OTHER_METHODS),
    [ONE_URI]: forge.claimDrafts('htu', OTHER_ADDRESSES),
    'A proof is at most 60 s old and 30 s ahead': timeCases(forge),
    'A proof is for one token': tokenCases(forge),
  })

function memberCases({ claims, claimDrafts, withRawClaim }: ProofForge): Draft[] {
  const wrong = [undefined, null, true, ['x'], { toString: 'x' }]
  const last = { htm: 'BREW', htu: 'https://attacker.test/', iat: 1, jti: '', ath: 'x' }
  return [
    ...Object.keys(last).flatMap((claim) => claimDrafts(claim, wrong)),
    ...claimDrafts('jti', { empty: '', 'of 257 characters': 'j'.repeat(257), 'a number': 5 }),
    ...Object.entries(last).map(([claim, value]): Draft => {
      const twice = `${JSON.stringify(claims[claim])},"${claim}":${JSON.stringify(value)}`
      return [`${claim} twice, the last wrong`, withRawClaim(claim, twice)]
    }),
  ]
}

const OTHER_METHODS = ['GET', 'post', 'POST ', '', '*']

const OTHER_ADDRESSES = {
  'another origin': ELSEWHERE,
  'the other scheme': `http://orders.test${PATH}`,
  'another port': `https://orders.test:444${PATH}`,
  'the port with a zero in front': `https://orders.test:0443${PATH}`,
  'a port that is none': `https://orders.test:x${PATH}`,
  'a longer host': `https://orders.test.attacker.test${PATH}`,
  'a host with a trailing dot': `https://orders.test.${PATH}`,
  'a user name': `https://user@orders.test${PATH}`,
  'the host as a user name': `https://orders.test@attacker.test${PATH}`,
  'an empty user name': `https://@orders.test${PATH}`,
  'an empty host': `https://${PATH}`,
  'no scheme': `//orders.test${PATH}`,
  'the path alone': PATH,
  'another scheme': `ws://orders.test${PATH}`,
  'one slash': `https:/orders.test${PATH}`,
  backslashes: `https:\\\\orders.test${PATH.replaceAll('/', '\\')}`,
  'a backslash in the path': `${URL_OF_REQUEST}\\`,
  'another path': `${URL_OF_REQUEST}x`,
  'the path in other case': `${BASE_URL}/Orders/4711`,
  'a trailing slash': `${URL_OF_REQUEST}/`,
  'a slash more': `${BASE_URL}/${PATH}`,
  'a prefix more': `${BASE_URL}/api${PATH}`,
  'only the base URL': BASE_URL,
  'a dot segment that leads elsewhere': `${URL_OF_REQUEST}/..`,
  'a dot segment at the end': `${URL_OF_REQUEST}/.`,
  'dot segments in percent form': `${URL_OF_REQUEST}/%2e%2e`,
  'a slash in percent form': `${BASE_URL}/orders%2F4711`,
  'a percent sign that is encoded twice': `${BASE_URL}/orders/471%2531`,
  'a percent sign alone': `${URL_OF_REQUEST}%`,
  'a malformed percent form': `${URL_OF_REQUEST}%zz`,
  'a query in percent form': `${URL_OF_REQUEST}%3Fa=1`,
  'a matrix parameter': `${URL_OF_REQUEST};a=1`,
  'white space before it': ` ${URL_OF_REQUEST}`,
  'white space behind it': `${URL_OF_REQUEST} `,
  'a tab in it': `${BASE_URL}\t${PATH}`,
  'a line break behind it': `${URL_OF_REQUEST}\n`,
  'a NUL behind it': `${URL_OF_REQUEST}\u0000`,
  'a character beyond ASCII': `${URL_OF_REQUEST}\u00e9`,
  'an empty text': '',
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
  return claimDrafts('ath', {
    "another token's": digest(unboundToken),
    'that of no token': digest(''),
    'of the scheme and the token': digest(`DPoP ${boundToken}`),
    'with padding': `${digest(boundToken)}=`,
    'in base64': hash('sha256', boundToken, 'base64'),
    'in hexadecimal': hash('sha256', boundToken, 'hex'),
    'the left half': digest(boundToken).slice(0, 22),
    'SHA-512': digest(boundToken, 'sha512'),
    'the token itself': boundToken.slice(0, 1024),
  })
}

/** Proofs whose header is wrong, or whose signature is not by the key in it. */
const headerCases = (forge: ProofForge): HostileProof[] =>
  forge.groups({
    'The type is exactly dpop+jwt': typeCases(forge),
    'The algorithm is exactly ES256': algorithmCases(forge),
    'The key is the public P-256 key of the token': keyCases(forge),
    'Nothing in the header changes how the proof is read': [
      ['crit of exp', forge.withHeader({ crit: ['exp'], exp: 1 })],
      ['crit of b64', forge.withHeader({ crit: ['b64'], b64: true })],
      ...forge.headerDrafts('crit', [[], null]),
    ],
    'The signature covers header and payload, to the bit': signatureCases(forge),
  })

function typeCases({ header, headerDrafts, token }: ProofForge): Draft[] {
  const values = [undefined, null, '', 5, ['dpop+jwt'], 'JWT', 'at+jwt', 'DPoP+JWT', 'dpop+jwt ']
  const rest = JSON.stringify({ ...header, typ: undefined }).slice(1)
  return [
    ...headerDrafts('typ', [...values, 'application/dpop+jwt']),
    ['typ twice, the last wrong', token({ header: `{"typ":"dpop+jwt","typ":"JWT",${rest}` })],
  ]
}

function algorithmCases(forge: ProofForge): Draft[] {
  const { header, headerDrafts, key, issuerSigner, token } = forge
  const values = [undefined, null, '', 256, ['ES256'], 'es256', 'ES384', 'ES256K', 'EdDSA', 'PS256']
  const twice = `{"typ":"dpop+jwt","alg":"ES256","alg":"none","jwk":${JSON.stringify(key.jwk)}}`
  const none = { header: { ...header, alg: 'none' }, signer: () => Buffer.alloc(64) }
  const rs256 = { header: { ...header, alg: 'RS256' }, signer: issuerSigner }
  return [
    ...headerDrafts('alg', [...values, 'None']),
    ['alg twice, the last wrong', token({ header: twice })],
    ['alg none', token(none)],
    ['RS256 by the key of the issuer', token(rs256)],
    ['RS256 that says ES256', token({ signer: issuerSigner })],
    ...publicSecrets(forge, key.publicKey),
  ]
}

function keyCases({ header, headerDrafts, key, attacker, withHeader, token }: ProofForge): Draft[] {
  const { jwk } = key
  const { d } = key.privateKey.export({ format: 'jwk' })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const offCurve = Buffer.from(jwk.y, 'base64url')
  offCurve.writeUInt8(offCurve.readUInt8(31) ^ 1, 31)
  const members = {
    kty: [undefined, null, 'RSA', 'oct', 'ec', 5],
    crv: [undefined, null, 'P-384', 'secp256k1', 'p-256', 5],
    x: [undefined, null, '', 5, `${jwk.x}=`, `A${jwk.x}`],
    y: [undefined, null, '', 5, attacker.jwk.y, offCurve.toString('base64url')],
    // A private member, and one of a symmetric key.
    d: [d, null],
    k: ['AAAA'],
  }
  const jwks = [jwk, attacker.jwk].map((each) => JSON.stringify(each))
  const signedBy = (pair: Pick<ProofKey, 'privateKey' | 'publicKey'>): string =>
    token({
      header: { ...header, jwk: pair.publicKey.export({ format: 'jwk' }) },
      signer: es256(pair.privateKey),
    })
  return [
    ...headerDrafts('jwk', [undefined, null, '', 5, [], {}]),
    ...headerDrafts('jwk', { 'in a list': [jwk], 'as text': JSON.stringify(jwk) }),
    ...Object.entries(members).flatMap(([member, values]) =>
      values.map((value): Draft => {
        const name = nameOf(`jwk with ${member}`, member === 'd' && value ? 'of the key' : value)
        return [name, withHeader({ jwk: { ...jwk, [member]: value } })]
      }),
    ),
    ['a key of another curve', signedBy(other)],
    ['an RSA key', withHeader({ jwk: rsa.publicKey.export({ format: 'jwk' }) })],
    ['the key of a stranger, who has signed', signedBy(attacker)],
    ['the key of a stranger, signed by the right one', withHeader({ jwk: attacker.jwk })],
    ['kid in place of jwk', withHeader({ jwk: undefined, kid: key.thumbprint })],
    [
      'jwk twice, the last that of a stranger',
      token({ header: `{"typ":"dpop+jwt","alg":"ES256","jwk":${jwks.join(',"jwk":')}}` }),
    ],
  ]
}

function signatureCases(forge: ProofForge): Drafts {
  const { attacker, key, signer, token, proofFor } = forge
  const sha384 = { key: key.privateKey, dsaEncoding: 'ieee-p1363' } as const
  const swapped: Signer = (input) => {
    const signature = Buffer.from(signer(input))
    return Buffer.concat([signature.subarray(32), signature.subarray(0, 32)])
  }
  const [header, payload] = proofFor().split('.')
  const [, otherPayload, otherSignature] = proofFor().split('.')
  return {
    ...alteredSignatures(forge),
    'by a stranger, with the right key beside it': token({ signer: es256(attacker.privateKey) }),
    'in DER': token({ signer: (input) => sign('sha256', input, key.privateKey) }),
    'with SHA-384': token({ signer: (input) => sign('sha384', input, sha384) }),
    'both halves exchanged': token({ signer: swapped }),
    "another proof's signature": `${header}.${payload}.${otherSignature}`,
    "another proof's payload": `${header}.${otherPayload}.${otherSignature?.slice(0, -4)}AAAA`,
  }
}
