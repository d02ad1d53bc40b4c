import type { HostileProof } from './hostile-proof.js'
import { type ProofForge, withProof } from './proof-forge.js'

/** Requests that bring a good proof in a wrong way, at a wrong place or a second time. */
export function proofRequestCases(forge: ProofForge): HostileProof[] {
  return [...fieldCases(forge), ...schemeCases(forge), ...targetCases(forge), ...replayCases(forge)]
}

function fieldCases(forge: ProofForge): HostileProof[] {
  const { token, proofFor, withHeader, proof, request } = forge
  const authorization = ['Authorization', `DPoP ${token}`]
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
    'the token itself': [token],
    'an empty header': [proof({ header: '' })],
    'a header that is a list': [proof({ header: '[]' })],
    'a header that is no UTF-8': [proof({ header: Buffer.of(0x7b, 0xff, 0x7d) })],
    'JSON in place of a JWS': ['{"htm":"GET"}'],
  }
  return Object.entries(fields).map(([name, values]) =>
    request(`DPoP: ${name}`, {
      headers: [...authorization, ...values.flatMap((value) => ['DPoP', value])],
    }),
  )
}

function schemeCases(forge: ProofForge): HostileProof[] {
  const { token, unboundToken, proofFor, request } = forge
  const why = 'A bound token goes with DPoP, an unbound one with Bearer'
  const values = {
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
  return Object.entries(values).map(([name, headers]) =>
    request(`Authorization: ${name}`, { why, headers: ['Authorization', ...headers] }),
  )
}

function targetCases(forge: ProofForge): HostileProof[] {
  const { baseUrl, path, proofFor, request } = forge
  const why = 'The URI is that of the request, and only normalised'
  const headers = withProof(forge, proofFor())
  const targets = {
    'another path': `${path}x`,
    'a path that begins with two slashes': `/${path}`,
    'an absolute target with another path': `${baseUrl}${path}x`,
    "an absolute target with the URI's path in its query": `${baseUrl}/?${path}`,
    'a trailing slash': `${path}/`,
    'a percent sign that is encoded twice': `${path}%2525`,
  }
  return [
    ...Object.entries(targets).map(([name, target]) =>
      request(`target: ${name}`, { why, target, headers }),
    ),
    request('target: the origin in the path', {
      why,
      headers: withProof(forge, proofFor('https://attacker.test/x')),
      target: '//attacker.test/x',
    }),
    request('target: an absolute one with another origin, which the proof has', {
      why,
      headers: withProof(forge, proofFor(`https://attacker.test${path}`)),
      target: `https://attacker.test${path}`,
    }),
    request('Host and X-Forwarded fields that the proof agrees with', {
      why,
      headers: [
        ...withProof(forge, proofFor(`https://attacker.test${path}`)),
        ...['X-Forwarded-Host', 'attacker.test', 'X-Forwarded-Proto', 'https'],
        ...['Forwarded', 'host=attacker.test;proto=https', 'X-Original-URL', path],
      ],
    }),
  ]
}

function replayCases(forge: ProofForge): HostileProof[] {
  const why = 'A proof is accepted once where single use is required'
  return (['here', 'elsewhere'] as const).map((where) =>
    forge.request(`a proof that was used ${where === 'here' ? 'before' : 'at another instance'}`, {
      why,
      headers: withProof(forge, forge.proofFor()),
      replays: where,
    }),
  )
}
