import type { Draft, HostileToken, TokenForge } from './forge.js'

/** Correctly signed tokens of an OAuth 2.0 issuer that are no access tokens for this receiver. */
export function oauth2Cases(forge: TokenForge): HostileToken[] {
  return [
    ...forge.group('The typ of an access token is at+jwt', typeCases(forge)),
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

function typeCases({ headerDrafts }: TokenForge): Draft[] {
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
  return [
    ['a user, by the approved client', withClaims(user)],
    ['a user named like the client with a prefix', withClaims({ ...user, sub: `user:${client}` })],
    [
      'a user, with the scope of everything',
      withClaims({ ...user, scope: `${claims['scope']} openid profile` }),
    ],
    [
      'an ID token of a user for the receiver, with typ at+jwt',
      withClaims({ ...user, scope: undefined, auth_time: claims['iat'] }),
    ],
  ]
}
