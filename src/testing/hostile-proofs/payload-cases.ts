import { hash } from '../../base/supported-node.js'
import type { HostileProof } from './hostile-proof.js'
import { type Draft, group, type ProofForge } from './proof-forge.js'

/** Rightly signed proofs that are for another request, time or token. */
export function proofPayloadCases(forge: ProofForge): HostileProof[] {
  return [
    ...group(forge, 'A proof has each member once, with its type', memberCases(forge)),
    ...group(forge, 'The method is that of the request, to the letter', methodCases(forge)),
    ...group(forge, 'The URI is that of the request, and only normalised', addressCases(forge)),
    ...group(forge, 'A proof is at most 60 s old and 30 s ahead', timeCases(forge)),
    ...group(forge, 'A proof is for one token', tokenCases(forge)),
  ]
}

function memberCases({ payload, withPayload, proof }: ProofForge): Draft[] {
  const wrong = [undefined, null, true, ['x'], { toString: 'x' }]
  const twice = (member: string, value: unknown): Draft => {
    const rest = JSON.stringify({ ...payload, [member]: undefined }).slice(1, -1)
    const [first, last] = [payload[member], value].map((each) => JSON.stringify(each))
    const name = JSON.stringify(member)
    return [
      `${member} twice, the last wrong`,
      proof({ payload: `{${rest},${name}:${first},${name}:${last}}` }),
    ]
  }
  return [
    ...['htm', 'htu', 'iat', 'jti', 'ath'].flatMap((member) =>
      wrong.map(
        (value): Draft => [
          `${member} ${JSON.stringify(value) ?? 'missing'}`,
          withPayload({ [member]: value }),
        ],
      ),
    ),
    ['jti empty', withPayload({ jti: '' })],
    ['jti of 257 characters', withPayload({ jti: 'j'.repeat(257) })],
    ['jti a number', withPayload({ jti: 5 })],
    twice('htm', 'BREW'),
    twice('htu', 'https://attacker.test/'),
    twice('iat', 1),
    twice('jti', ''),
    twice('ath', 'x'),
    ['a payload that is a list', proof({ payload: '[]' })],
    ['a payload that is null', proof({ payload: 'null' })],
    ['a payload that is no JSON', proof({ payload: 'x' })],
    ['a payload with a byte order mark', proof({ payload: `\ufeff${JSON.stringify(payload)}` })],
  ]
}

function methodCases({ method, withPayload }: ProofForge): Draft[] {
  const others = [method === 'GET' ? 'HEAD' : 'GET', method.toLowerCase(), `${method} `, '', '*']
  return others.map((htm): Draft => [`htm ${JSON.stringify(htm)}`, withPayload({ htm })])
}

function addressCases({ baseUrl, path, url, withPayload }: ProofForge): Draft[] {
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
  return Object.entries(addresses).map(
    ([name, htu]): Draft => [`htu: ${name}`, withPayload({ htu })],
  )
}

function timeCases({ payload, withPayload }: ProofForge): Draft[] {
  const now = Number(payload['iat'])
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
    ...Object.entries(times).map(([name, iat]): Draft => [`iat: ${name}`, withPayload({ iat })]),
    [
      'iat: old, with exp and nbf that hold',
      withPayload({ iat: now - 120, nbf: 0, exp: now + 900 }),
    ],
  ]
}

function tokenCases({ token, unboundToken, withPayload }: ProofForge): Draft[] {
  const digest = (text: string, algorithm = 'sha256') => hash(algorithm, text, 'base64url')
  const values = {
    "another token's": digest(unboundToken),
    'that of no token': digest(''),
    'of the scheme and the token': digest(`DPoP ${token}`),
    'with padding': `${digest(token)}=`,
    'in base64': hash('sha256', token, 'base64'),
    'in hexadecimal': hash('sha256', token, 'hex'),
    'the left half': digest(token).slice(0, 22),
    'SHA-512': digest(token, 'sha512'),
    'the token itself': token.slice(0, 1024),
  }
  return Object.entries(values).map(([name, ath]): Draft => [`ath: ${name}`, withPayload({ ath })])
}
