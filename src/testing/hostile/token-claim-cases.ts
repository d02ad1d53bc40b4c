import type { Draft, HostileToken, TokenForge } from './forge.js'

const HOUR = 3600
const CENTURY = 100 * 365 * 24 * HOUR

/** Correctly signed tokens that the policy does not accept. */
export function claimCases(forge: TokenForge): HostileToken[] {
  const texts = forge.isOAuth2 ? ['iss', 'sub'] : ['iss', 'aud', 'sub', 'source', 'token_type']
  return [
    ...texts.flatMap((claim) =>
      forge.group(`${claim} is required, and is text`, typeCases(forge, claim)),
    ),
    ...texts.flatMap((claim) =>
      forge.group(
        claim === 'sub' ? 'Nobody but an approved caller' : `${claim} is compared to the letter`,
        spellingCases(forge, claim),
        { expect: claim === 'sub' ? 403 : 401 },
      ),
    ),
    ...forge.group('Nothing inherited is an approved caller', inheritedCallers(forge), {
      expect: 403,
    }),
    ...(forge.isOAuth2
      ? []
      : forge.group('Permissions are a list of texts', permissionCases(forge))),
    ...forge.group('Own members named like inherited ones are inert', inertCases(forge)),
    ...forge.group('A token id is text of 1 to 256 characters', jtiCases(forge)),
    ...forge.group('A bound token is no bearer token', boundCases(forge)),
    ...forge.group('A user session is no service', [
      ['a session token of the same core', session(forge)],
    ]),
  ]
}

function typeCases({ claims, claimDrafts }: TokenForge, claim: string): Draft[] {
  const right = claims[claim]
  const values = [
    undefined,
    null,
    '',
    0,
    1,
    true,
    false,
    [],
    {},
    [right],
    [right, right],
    [right, 'another'],
    { toString: right },
    { [String(right)]: true },
  ]
  return claimDrafts(claim, values, right)
}

function spellingCases({ claims, claimDrafts }: TokenForge, claim: string): Draft[] {
  const right = String(claims[claim])
  const spellings = {
    'in other case': otherCase(right),
    'after a blank': ` ${right}`,
    'before a blank': `${right} `,
    'before a line break': `${right}\n`,
    'before a NUL': `${right}\u0000`,
    'before a slash': `${right}/`,
    'before a character without width': `${right}\u200b`,
    'with a homoglyph': homoglyph(right),
    'cut off': right.slice(0, -1),
    'twice in a row': `${right}${right}`,
    'of somebody else': 'somebody-else',
    'as a wildcard': '*',
    'as a regular expression': '.*',
  }
  const wrong = Object.entries(spellings).filter(([, value]) => value !== right && value !== '')
  return claimDrafts(claim, Object.fromEntries(wrong))
}

const otherCase = (text: string): string => {
  const upper = text.toUpperCase()
  return upper === text ? text.toLowerCase() : upper
}

/** Cyrillic letters that look like Latin ones. */
const LOOKALIKES: Record<string, string> = {
  a: '\u0430',
  c: '\u0441',
  e: '\u0435',
  i: '\u0456',
  o: '\u043e',
  p: '\u0440',
  s: '\u0455',
  x: '\u0445',
  y: '\u0443',
}

const homoglyph = (text: string): string =>
  text.replace(/[aceiopsxy]/, (letter) => LOOKALIKES[letter] ?? letter)

const inheritedCallers = ({ claimDrafts }: TokenForge): Draft[] =>
  claimDrafts('sub', ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0'])

function permissionCases({ claims, claimDrafts }: TokenForge): Draft[] {
  const right = Array.isArray(claims['permissions']) ? claims['permissions'] : []
  const [first = 'read'] = right
  const values = [
    undefined,
    null,
    first,
    right.join(' '),
    right.join(','),
    '*',
    1,
    true,
    {},
    { 0: first, length: 1 },
    { [String(first)]: true },
    [right],
    [[[first]]],
    [...right, 1],
    [...right, null],
    [...right, { toString: first }],
    [null],
    [{}],
  ]
  return claimDrafts('permissions', values)
}

/** A receiver that confuses such a member with the prototype would find the missing claims there. */
function inertCases({ claims, token }: TokenForge): Draft[] {
  const { sub, permissions, exp, ...rest } = claims
  const hidden = JSON.stringify({ sub, permissions, exp })
  const open = JSON.stringify(rest).slice(0, -1)
  return ['__proto__', 'constructor', 'hasOwnProperty', 'prototype'].map(
    (name): Draft => [
      `the missing claims in an own ${name}`,
      token({ payload: `${open},"${name}":${hidden}}` }),
    ],
  )
}

const jtiCases = ({ claimDrafts }: TokenForge): Draft[] =>
  claimDrafts('jti', [null, 1, true, {}, ['id'], '', 'x'.repeat(257), '\ud800'])

const boundCases = ({ claimDrafts }: TokenForge): Draft[] =>
  claimDrafts('cnf', [{ jkt: 'x' }, { 'x5t#S256': 'x' }, { jwk: {} }, {}, null, '', false])

/** A token that the core issues to browsers: its `iss` ends with the API's base path. */
function session({ claims, token }: TokenForge): string {
  const { iss, iat, exp } = claims
  const user = 'f3b1c8c4-0d0a-4f0e-9a52-6f1f6d8a2f10'
  const handle = { sessionHandle: `${user}-handle`, refreshTokenHash1: 'a1b2', tId: 'public' }
  return token({ payload: { iss: `${iss}/auth`, iat, exp, sub: user, rsub: user, ...handle } })
}

/** Correctly signed tokens that are not valid now. */
export function timeCases(forge: TokenForge): HostileToken[] {
  const { claims, claimDrafts, withClaims, withRawClaim } = forge
  const now = Number(claims['iat'])
  const types = { null: null, true: true, '{}': {}, '[]': [], '""': '', '"now"': 'now' }
  const later = { 'as text': String(now + 60), 'in a list': [now + 60] }
  const past = { 'an hour ago': now - HOUR, 'a minute ago': now - 60, zero: 0, negative: -now }
  const ahead = {
    'in an hour': now + HOUR,
    'in a hundred years': now + CENTURY,
    'in milliseconds': now * 1000,
    'as text': String(now),
  }
  return [
    ...forge.group('A token expires, at a number of seconds', [
      ...claimDrafts('exp', { missing: undefined, ...types, ...later }),
      ['exp 1e400', withRawClaim('exp', '1e400')],
      ['exp -1e400', withRawClaim('exp', '-1e400')],
    ]),
    ...forge.group('A token that has expired is of no use', [
      ...claimDrafts('exp', past),
      ['exp an hour ago, without iat', withClaims({ exp: now - HOUR, iat: undefined })],
    ]),
    ...forge.group('A token lives for as long as the policy allows, at most', [
      ['exp in a hundred years', withClaims({ exp: now + CENTURY })],
      ['exp in a hundred years, without iat', withClaims({ exp: now + CENTURY, iat: undefined })],
      ['exp in milliseconds', withClaims({ exp: (now + 60) * 1000 })],
      ['exp at the edge of numbers', withRawClaim('exp', '1.7976931348623157e308')],
      ['iat a hundred years ago', withClaims({ iat: now - CENTURY })],
      ['iat at the edge of numbers', withRawClaim('iat', '-1.7976931348623157e308')],
    ]),
    ...['nbf', 'iat'].flatMap((claim) =>
      forge.group(`${claim} is a number of seconds, and not in the future`, [
        ...claimDrafts(claim, { ...ahead, ...types }),
        [`${claim} 1e400`, withRawClaim(claim, '1e400')],
        [`${claim} -1e400`, withRawClaim(claim, '-1e400')],
      ]),
    ),
  ]
}

/** Correctly signed tokens of an OAuth 2.0 issuer that are no access tokens for this receiver. */
export function oauth2Cases(forge: TokenForge): HostileToken[] {
  return [
    ...forge.group('The typ of an access token is at+jwt', tokenTypeCases(forge)),
    ...forge.group(
      'The audience is the receiver, or a list that contains it',
      audienceCases(forge),
    ),
    ...forge.group('A scope is text', scopeCases(forge)),
    ...forge.group('An ID token is no access token', idTokenCases(forge)),
    ...forge.group('A user of an approved client is no approved caller', userCases(forge), {
      expect: 403,
    }),
  ]
}

function tokenTypeCases({ headerDrafts }: TokenForge): Draft[] {
  const types = [
    undefined,
    null,
    '',
    1,
    true,
    {},
    ['at+jwt'],
    'JWT',
    'jwt',
    'application/jwt',
    'at',
    'atjwt',
    'at jwt',
    'at%2Bjwt',
    'at+jwt ',
    ' at+jwt',
    'at+jwt\n',
    'at+jwt\u0000',
    'at+jwt; charset=utf-8',
    'at+jwt,JWT',
    'at+jwts',
    'xat+jwt',
    '\u0430t+jwt',
    'text/at+jwt',
    'application/application/at+jwt',
    '/at+jwt',
    'dpop+jwt',
    'logout+jwt',
    'token-introspection+jwt',
    'secevent+jwt',
  ]
  return headerDrafts('typ', types)
}

function audienceCases({ claims, claimDrafts }: TokenForge): Draft[] {
  const right = claims['aud']
  const values = [
    undefined,
    null,
    '',
    0,
    true,
    {},
    [],
    ['another'],
    [[right]],
    [right, 1],
    [null, right],
    [right, [right]],
    { 0: right, length: 1 },
    { [String(right)]: true },
    `${right} another`,
    `${right},another`,
    `${right}/`,
    String(right).toUpperCase(),
    [`${right} `],
    '*',
    ['*'],
  ]
  return claimDrafts('aud', values, right)
}

function scopeCases({ claims, claimDrafts }: TokenForge): Draft[] {
  const { scope } = claims
  const names = String(scope).split(' ')
  const values = [null, 1, true, {}, [], names, [scope], [[scope]], { 0: scope, length: 1 }]
  return claimDrafts('scope', values)
}

/** As OpenID Connect Core, section 2, describes them, of the client that is an approved caller. */
function idTokenCases({ claims, header, token }: TokenForge): Draft[] {
  const { iss, sub, iat, exp, aud } = claims
  const idToken = { iss, sub, iat, exp, azp: sub, auth_time: iat, nonce: 'n-0S6_WzA2Mj' }
  const make = (typ: string, audience: unknown): string =>
    token({ header: { ...header, typ }, payload: { ...idToken, aud: audience } })
  return [
    ['an ID token for the client', make('JWT', sub)],
    ['an ID token for the receiver', make('JWT', aud)],
    ['an ID token for both', make('JWT', [sub, aud])],
    ['an ID token for the client, with typ at+jwt', make('at+jwt', sub)],
  ]
}

function userCases({ claims, withClaims }: TokenForge): Draft[] {
  const { sub: client } = claims
  const user = { sub: 'auth0|5f7c8ec7c33c6c004bbafe82', client_id: client, azp: client }
  return Object.entries({
    'a user, by the approved client': withClaims(user),
    'a user named like the client with a prefix': withClaims({ ...user, sub: `user:${client}` }),
    'a user, with the scope of everything': withClaims({
      ...user,
      scope: `${claims['scope']} openid profile`,
    }),
    'an ID token of a user for the receiver, with typ at+jwt': withClaims({
      ...user,
      scope: undefined,
      auth_time: claims['iat'],
    }),
  })
}
