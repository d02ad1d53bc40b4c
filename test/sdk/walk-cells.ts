import {
  bearer,
  cookie,
  linesOf,
  type Presents,
  resigned,
  sessionOfOld,
  withVersion,
} from './presents.js'

/** Who is asked to verify. */
export type Asked = 'nobody' | 'the SDK' | 'serviceAuth'

export interface Cell {
  readonly title: string
  /** Header lines. */
  readonly send: (given: Presents) => readonly string[]
  readonly asked: Asked
  readonly answer: string
}

const USER = '200 {"name":"user","id":"alice"}'
const SERVICE = '200 {"name":"service","id":"billing"}'
const TRY_REFRESH = '401 {"message":"try refresh token"}'
const UNAUTHORISED = '401 {"message":"unauthorised"}'
const BLOCKED =
  '403 {"message":"invalid claim","claimValidationErrors":[{"id":"blocked","reason":"shut out"}]}'
const INVALID = '401 of an invalid token'

/** Any `Authorization`, and any cookie of a session's name. */
const ANYTHING: readonly [string, (given: Presents) => readonly string[]][] = [
  ['a session in the header', ({ header }) => linesOf(header)],
  ['a service token', ({ service }) => [bearer(service)]],
  ['garbage', () => [bearer('garbage')]],
  ['another scheme', () => ['Authorization: Basic Ym9iOm1l']],
  ['nothing in the header', () => ['Authorization:']],
]
const ANY_COOKIE: readonly [string, (given: Presents) => string][] = [
  ['a session', ({ cookie: { token } }) => token],
  ['a minted token', ({ mintedSession }) => mintedSession],
  ['garbage', () => 'garbage'],
  ['nothing', () => ''],
]

const one = (title: string, send: Cell['send'], asked: Asked, answer: string): Cell => ({
  title,
  send,
  asked,
  answer,
})

const withCookie: readonly Cell[] = [
  one('a good session', (given) => linesOf(given.cookie), 'the SDK', USER),
  one(
    'a good session among other cookies',
    ({ cookie: { token, antiCsrf } }) => [
      `Cookie: theme=dark; sAccessToken=${token}; sRefreshToken=x`,
      ...(antiCsrf === undefined ? [] : [`anti-csrf: ${antiCsrf}`]),
    ],
    'the SDK',
    USER,
  ),
  one(
    'a session with another signature',
    (given) => [cookie(resigned(given.cookie.token))],
    'the SDK',
    TRY_REFRESH,
  ),
  one(
    'a session that a claim validator refuses',
    (given) => linesOf(given.blockedCookie),
    'the SDK',
    BLOCKED,
  ),
  one('garbage', () => [cookie('garbage')], 'nobody', INVALID),
  one('an empty cookie', () => [cookie('')], 'nobody', INVALID),
  one('a service token', (given) => [cookie(given.service)], 'nobody', INVALID),
  one('a minted session', (given) => [cookie(given.mintedSession)], 'nobody', INVALID),
  one('a quoted session', (given) => [cookie(`"${given.cookie.token}"`)], 'nobody', INVALID),
  one(
    'a session with percent signs',
    (given) => [cookie(given.cookie.token.replaceAll('.', '%2E'))],
    'nobody',
    INVALID,
  ),
]

const withHeader: readonly Cell[] = [
  one('a good service token', (given) => [bearer(given.service)], 'serviceAuth', SERVICE),
  one(
    'a service token with another signature',
    (given) => [bearer(resigned(given.service))],
    'serviceAuth',
    INVALID,
  ),
  one(
    'a service token without the permission',
    (given) => [bearer(given.serviceWithoutPermission)],
    'serviceAuth',
    '403 of a service',
  ),
  one('a good session', (given) => linesOf(given.header), 'the SDK', USER),
  one(
    'a good session, and the wish for a cookie the next time',
    (given) => [...linesOf(given.header), 'st-auth-mode: cookie', 'rid: session'],
    'the SDK',
    USER,
  ),
  one(
    'a good session under a scheme in small letters, which the SDK does not read',
    (given) => [`Authorization: bearer ${given.header.token}`],
    'the SDK',
    UNAUTHORISED,
  ),
  one(
    'a good session after two spaces',
    (given) => [bearer(` ${given.header.token}`)],
    'serviceAuth',
    INVALID,
  ),
  one('the session of a cookie', (given) => [bearer(given.cookie.token)], 'the SDK', USER),
  one(
    'a session with another signature',
    (given) => [bearer(resigned(given.header.token))],
    'the SDK',
    TRY_REFRESH,
  ),
  one(
    'a session that a claim validator refuses',
    (given) => linesOf(given.blockedHeader),
    'the SDK',
    BLOCKED,
  ),
  ...['3', '4', '6'].map((version) =>
    one(
      `a session of version ${version} instead`,
      (given) => [bearer(withVersion(given.header.token, version))],
      'the SDK',
      TRY_REFRESH,
    ),
  ),
  one(
    'a session of version 2 instead',
    (given) => [bearer(withVersion(given.header.token, '2'))],
    'the SDK',
    UNAUTHORISED,
  ),
  one('a session of old', () => [bearer(sessionOfOld())], 'serviceAuth', INVALID),
  one(
    'a service token with an added version',
    (given) => [bearer(withVersion(given.service, '5'))],
    'the SDK',
    UNAUTHORISED,
  ),
  one(
    'a minted session with an added version',
    (given) => [bearer(withVersion(given.mintedSession, '4'))],
    'the SDK',
    TRY_REFRESH,
  ),
  one(
    'a session without its version',
    (given) => [bearer(withVersion(given.header.token, undefined))],
    'serviceAuth',
    INVALID,
  ),
  one('a minted session', (given) => [bearer(given.mintedSession)], 'serviceAuth', INVALID),
  // Whoever may mint may call as a service; as a user, nobody may who has no session.
  one(
    'a minted session and service',
    (given) => [bearer(given.mintedBoth)],
    'serviceAuth',
    SERVICE,
  ),
  one('garbage', () => [bearer('garbage')], 'serviceAuth', INVALID),
  one('another scheme', () => ['Authorization: Basic Ym9iOm1l'], 'serviceAuth', INVALID),
  one('an empty header', () => ['Authorization:'], 'serviceAuth', INVALID),
  one(
    'two service tokens',
    (given) => [bearer(given.service), bearer(given.service)],
    'serviceAuth',
    INVALID,
  ),
  one(
    'two sessions',
    (given) => [bearer(given.header.token), bearer(given.header.token)],
    'serviceAuth',
    INVALID,
  ),
]

const withBoth: readonly Cell[] = ANYTHING.flatMap(([inHeader, lines]) =>
  ANY_COOKIE.map(([inCookie, value]) =>
    one(
      `${inHeader}, and a cookie of ${inCookie}`,
      (given) => [...lines(given), cookie(value(given))],
      'nobody',
      INVALID,
    ),
  ),
)

/** Two cookies that one reader or another takes for the session's. */
const withTwo: readonly Cell[] = (
  [
    ['of one name', (token: string) => [cookie(`${token}; sAccessToken=${token}`)]],
    ['in two headers', (token: string) => [cookie(token), cookie(token)]],
    ['the other with a space', (token: string) => [cookie(`x; sAccessToken =${token}`)]],
    ['the other with a percent sign', (token: string) => [cookie(`x; s%41ccessToken=${token}`)]],
  ] as const
).map(([title, send]) =>
  one(`two cookies, ${title}`, (given) => send(given.cookie.token), 'nobody', INVALID),
)

const withPercent = one(
  'a session whose name has a percent sign',
  (given) => [cookie(given.cookie.token, 's%41ccessToken')],
  'nobody',
  INVALID,
)

/** The table of what may be presented, cell by cell. */
export const CELLS: readonly Cell[] = [
  one('nothing', () => [], 'nobody', '401 without a token'),
  one('another cookie', () => [cookie('dark', 'theme')], 'nobody', '401 without a token'),
  ...withCookie.map((cell) => ({ ...cell, title: `in the cookie: ${cell.title}` })),
  ...withHeader.map((cell) => ({ ...cell, title: `in the header: ${cell.title}` })),
  ...withBoth.map((cell) => ({ ...cell, title: `in both: ${cell.title}` })),
  ...withTwo,
  withPercent,
]
