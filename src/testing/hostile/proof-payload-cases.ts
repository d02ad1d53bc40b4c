import { hash } from '../../base/supported-node.js'
import type { Draft, HostileProof, ProofForge } from './forge.js'

/** Rightly signed proofs that are for another request, time or token. */
export function proofPayloadCases(forge: ProofForge): HostileProof[] {
  return [
    ...forge.group('A proof has each member once, with its type', memberCases(forge)),
    ...forge.group('The method is that of the request, to the letter', methodCases(forge)),
    ...forge.group('The URI is that of the request, and only normalised', addressCases(forge)),
    ...forge.group('A proof is at most 60 s old and 30 s ahead', timeCases(forge)),
    ...forge.group('A proof is for one token', tokenCases(forge)),
  ]
}

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
