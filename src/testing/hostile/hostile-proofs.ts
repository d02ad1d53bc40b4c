import { lazy, nonEmptyString, optionsObject, parseOptions } from '../../base/options.js'
import { parseBaseUrl } from '../../verification/confirmation/http-uri.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'
import { createProofKey } from '../issuer/bound-token.js'
import type { TestIssuer } from '../issuer/issuer.js'
import { createProofForge, type HostileProof, type ProofForge } from './forge.js'
import { proofHeaderCases, proofPayloadCases } from './proof-cases.js'

/** Where the proofs of the catalogue are sent. */
export interface HostileProofTarget {
  /** One of the `baseUrls` of the receiver's policy. Default: `https://orders.test`. */
  readonly baseUrl?: string | undefined
  /** The method of the requests. Default: `POST`. */
  readonly method?: string | undefined
  /** A path of the receiver, with letters in it. Default: `/orders/4711`. */
  readonly path?: string | undefined
}

const schema = lazy(() =>
  optionsObject({
    baseUrl: nonEmptyString()
      .refine((text) => parseBaseUrl(text) !== undefined, {
        error: 'must be one of the baseUrls of a policy',
      })
      .default('https://orders.test'),
    method: nonEmptyString().default('POST'),
    path: nonEmptyString()
      .regex(/^\/[\w/-]*[a-z][\w/-]*\w$/, {
        error: 'must be a path with letters, such as /orders/4711',
      })
      .default('/orders/4711'),
  }),
)

/**
 * Returns requests with tokens that are bound to a key (DPoP), which a receiver with `senderConstraint.dpop`
 * must refuse. Send them within a minute: their proofs are made now.
 *
 * @throws TypeError if the issuer was not made by `createTestIssuer`, or the target is not valid.
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
  target: HostileProofTarget = {},
): HostileProof[] {
  const options = parseOptions('hostileProofs target', schema, target)
  const key = createProofKey()
  const { clock = Date.now } = issuer.policy()
  const forge = createProofForge({
    ...options,
    key,
    boundToken: issuer.token({ cnf: { jkt: key.thumbprint } }),
    unboundToken: issuer.token(),
    now: clock() / 1000,
  })
  return [
    ...proofHeaderCases(forge, issuer),
    ...proofPayloadCases(forge),
    ...fieldCases(forge),
    ...schemeCases(forge),
    ...targetCases(forge),
    ...replayCases(forge),
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
    'an empty signature': [`${header}.${payload}.`],
    'four segments': [`${good}.${signature}`],
    padding: [`${good}=`],
    'the token itself': [boundToken],
    'an empty header': [token({ header: '' })],
    'a header that is a list': [token({ header: '[]' })],
    'a header that is no UTF-8': [token({ header: Buffer.of(0x7b, 0xff, 0x7d) })],
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
      'Authorization',
      `Bearer ${token}`,
      'DPoP',
      proofFor(),
    ],
    'a proof as the token': [`DPoP ${proofFor()}`, 'DPoP', proofFor()],
  }
  const change = (headers: readonly string[]) => ({ headers: ['Authorization', ...headers] })
  const why = 'A bound token goes with DPoP, an unbound one with Bearer'
  return requests(forge, why, named('Authorization', values, change))
}

function targetCases(forge: ProofForge): HostileProof[] {
  const { baseUrl, path, proofFor, headersWith } = forge
  const headers = headersWith(proofFor())
  const targets = {
    'another path': `${path}x`,
    'a path that begins with two slashes': `/${path}`,
    'an absolute target with another path': `${baseUrl}${path}x`,
    "an absolute target with the URI's path in its query": `${baseUrl}/?${path}`,
    'a trailing slash': `${path}/`,
    'a percent sign that is encoded twice': `${path}%2525`,
  }
  const elsewhere = `https://attacker.test${path}`
  return requests(forge, 'The URI is that of the request, and only normalised', {
    ...named('target', targets, (target) => ({ target, headers })),
    'target: the origin in the path': {
      headers: headersWith(proofFor('https://attacker.test/x')),
      target: '//attacker.test/x',
    },
    'target: an absolute one with another origin, which the proof has': {
      headers: headersWith(proofFor(elsewhere)),
      target: elsewhere,
    },
    'Host and X-Forwarded fields that the proof agrees with': {
      headers: [
        ...headersWith(proofFor(elsewhere)),
        ...['X-Forwarded-Host', 'attacker.test', 'X-Forwarded-Proto', 'https'],
        ...['Forwarded', 'host=attacker.test;proto=https', 'X-Original-URL', path],
      ],
    },
  })
}

const replayCases = (forge: ProofForge): HostileProof[] =>
  requests(forge, 'A proof is accepted once where single use is required', {
    'a proof that was used before': { replays: 'here' },
    'a proof that was used at another instance': { replays: 'elsewhere' },
  })
