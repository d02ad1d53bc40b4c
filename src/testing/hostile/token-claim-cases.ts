import { type Draft, type Drafts, type HostileToken, NO_TEXT, type TokenForge } from './forge.js'

const HOUR = 3600
const CENTURY = 100 * 365 * 24 * HOUR

/** Correctly signed tokens that the policy does not accept. */
export function claimCases(forge: TokenForge): HostileToken[] {
  const { isOAuth2, claimDrafts } = forge
  const texts = isOAuth2 ? ['iss', 'sub'] : ['iss', 'aud', 'sub', 'source', 'token_type']
  const permissions = { 'Permissions are a list of texts': permissionCases(forge) }
  return [
    ...texts.flatMap((claim) => [
      ...forge.groups({ [`${claim} is required, and is text`]: typeCases(forge, claim) }),
      ...(claim === 'sub'
        ? []
        : forge.groups({ [`${claim} is compared to the letter`]: spellingCases(forge, claim) })),
    ]),
    ...forge.groups(
      {
        'Nobody but an approved caller': spellingCases(forge, 'sub'),
        'Nothing inherited is an approved caller': claimDrafts('sub', INHERITED),
      },
      { expect: 403 },
    ),
    ...forge.groups({
      ...(!isOAuth2 && permissions),
      'Own members named like inherited ones are inert': inertCases(forge),
      'A token id is text of 1 to 256 characters': claimDrafts('jti', WRONG_IDS),
      'A bound token is no bearer token': claimDrafts('cnf', BINDINGS),
      'A user session is no service': { 'a session token of the same core': session(forge) },
    }),
  ]
}

const INHERITED = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '0']
const WRONG_IDS = [null, 1, true, {}, ['id'], '', 'x'.repeat(257), '\ud800']
const BINDINGS = [{ jkt: 'x' }, { 'x5t#S256': 'x' }, { jwk: {} }, {}, null, '', false]

function typeCases({ claims, claimDrafts }: TokenForge, claim: string): Draft[] {
  const right = claims[claim]
  const around = [[right], [right, right], [right, 'another'], { toString: right }]
  return claimDrafts(claim, [...NO_TEXT, ...around, { [String(right)]: true }], right)
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

const LATIN = 'aceiopsxy'
const CYRILLIC = '\u0430\u0441\u0435\u0456\u043e\u0440\u0455\u0445\u0443'

const homoglyph = (text: string): string =>
  text.replace(/[aceiopsxy]/, (letter) => CYRILLIC.charAt(LATIN.indexOf(letter)))

function permissionCases({ claims, claimDrafts }: TokenForge): Draft[] {
  const right = Array.isArray(claims['permissions']) ? claims['permissions'] : []
  const [first = 'read'] = right
  const texts = [undefined, null, 1, true, {}, first, right.join(' '), right.join(','), '*']
  const objects = [{ 0: first, length: 1 }, { [String(first)]: true }]
  const lists = [[right], [[[first]]], [null], [{}]]
  const mixed = [1, null, { toString: first }].map((wrong) => [...right, wrong])
  return claimDrafts('permissions', [...texts, ...objects, ...lists, ...mixed])
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
  const beyond = (claim: string): Draft[] =>
    ['1e400', '-1e400'].map((json) => [`${claim} ${json}`, withRawClaim(claim, json)])
  const notYet = (claim: string): Draft[] => [
    ...claimDrafts(claim, { ...ahead, ...types }),
    ...beyond(claim),
  ]
  return forge.groups({
    'A token expires, at a number of seconds': [
      ...claimDrafts('exp', { missing: undefined, ...types, ...later }),
      ...beyond('exp'),
    ],
    'A token that has expired is of no use': [
      ...claimDrafts('exp', past),
      ['exp an hour ago, without iat', withClaims({ exp: now - HOUR, iat: undefined })],
    ],
    'A token lives for as long as the policy allows, at most': {
      'exp in a hundred years': withClaims({ exp: now + CENTURY }),
      'exp in a hundred years, without iat': withClaims({ exp: now + CENTURY, iat: undefined }),
      'exp in milliseconds': withClaims({ exp: (now + 60) * 1000 }),
      'exp at the edge of numbers': withRawClaim('exp', '1.7976931348623157e308'),
      'iat a hundred years ago': withClaims({ iat: now - CENTURY }),
      'iat at the edge of numbers': withRawClaim('iat', '-1.7976931348623157e308'),
    },
    'nbf is a number of seconds, and not in the future': notYet('nbf'),
    'iat is a number of seconds, and not in the future': notYet('iat'),
  })
}

/** Correctly signed tokens of an OAuth 2.0 issuer that are no access tokens for this receiver. */
export const oauth2Cases = (forge: TokenForge): HostileToken[] => [
  ...forge.groups({
    'The typ of an access token is at+jwt': tokenTypeCases(forge),
    'The audience is the receiver, or a list that contains it': audienceCases(forge),
    'A scope is text': scopeCases(forge),
    'An ID token is no access token': idTokenCases(forge),
  }),
  ...forge.groups(
    { 'A user of an approved client is no approved caller': userCases(forge) },
    { expect: 403 },
  ),
]

function tokenTypeCases({ headerDrafts }: TokenForge): Draft[] {
  const others = ['JWT', 'jwt', 'application/jwt', 'dpop+jwt', 'logout+jwt', 'secevent+jwt']
  const cut = ['at', 'atjwt', 'at jwt', 'at%2Bjwt', 'at+jwts', 'xat+jwt', '\u0430t+jwt']
  const around = ['at+jwt ', ' at+jwt', 'at+jwt\n', 'at+jwt\u0000', 'at+jwt; charset=utf-8']
  const prefixed = ['text/at+jwt', 'application/application/at+jwt', '/at+jwt', 'at+jwt,JWT']
  const types = [...NO_TEXT, ['at+jwt'], 'token-introspection+jwt']
  return headerDrafts('typ', [...types, ...others, ...cut, ...around, ...prefixed])
}

function audienceCases({ claims, claimDrafts }: TokenForge): Draft[] {
  const right = String(claims['aud'])
  const texts = [`${right} another`, `${right},another`, `${right}/`, right.toUpperCase(), '*']
  const lists = [['another'], [[right]], [right, 1], [null, right], [right, [right]], ['*']]
  const objects = [[`${right} `], { 0: right, length: 1 }, { [right]: true }]
  return claimDrafts('aud', [...NO_TEXT, ...texts, ...lists, ...objects], right)
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

function userCases({ claims, withClaims }: TokenForge): Drafts {
  const { sub: client, scope, iat } = claims
  const user = { sub: 'auth0|5f7c8ec7c33c6c004bbafe82', client_id: client, azp: client }
  const idToken = { ...user, scope: undefined, auth_time: iat }
  return {
    'a user, by the approved client': withClaims(user),
    'a user named like the client with a prefix': withClaims({ ...user, sub: `user:${client}` }),
    'a user, with the scope of everything': withClaims({
      ...user,
      scope: `${scope} openid profile`,
    }),
    'an ID token of a user for the receiver, with typ at+jwt': withClaims(idToken),
  }
}
