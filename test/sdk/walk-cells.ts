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

/** Header lines. */
type Send = (given: Presents) => readonly string[]

export interface Cell {
  readonly title: string
  readonly send: Send
  readonly asked: Asked
  readonly answer: string
  /** The reason in the event of `acceptOneOf`, or `accepted`; none where a verifier has answered. */
  readonly told: string
}

const TRY_REFRESH = '401 {"message":"try refresh token"}'
const UNAUTHORISED = '401 {"message":"unauthorised"}'
const BLOCKED =
  '403 {"message":"invalid claim","claimValidationErrors":[{"id":"blocked","reason":"shut out"}]}'
const INVALID = '401 of an invalid token'

const asUser = (title: string, send: Send): Cell => ({
  ...{ title, send, asked: 'the SDK', told: 'accepted' },
  answer: '200 {"name":"user","id":"alice"}',
})
const asService = (title: string, send: Send): Cell => ({
  ...{ title, send, asked: 'serviceAuth', told: 'accepted' },
  answer: '200 {"name":"service","id":"billing"}',
})
const bySdk = (title: string, answer: string, send: Send): Cell => ({
  ...{ title, send, asked: 'the SDK', answer, told: '' },
})
const byServiceAuth = (title: string, send: Send): Cell => ({
  ...{ title, send, asked: 'serviceAuth', answer: INVALID, told: '' },
})
const malformed = (title: string, send: Send): Cell => ({
  ...{ title, send, asked: 'nobody', answer: INVALID, told: 'session_token_malformed' },
})
const missing = (title: string, send: Send): Cell => ({
  ...{ title, send, asked: 'nobody', told: 'credentials_missing' },
  answer: '401 without a token',
})

const withCookie: readonly Cell[] = [
  asUser('a good session', (given) => linesOf(given.cookie)),
  asUser('a good session among others, in several headers', ({ cookie: { token, antiCsrf } }) => [
    'Cookie: theme=dark; a',
    `Cookie: sRefreshToken=x; sAccessToken=${token} ;b=c`,
    ...(antiCsrf === undefined ? [] : [`anti-csrf: ${antiCsrf}`]),
  ]),
  bySdk('a session with another signature', TRY_REFRESH, (given) => [
    cookie(resigned(given.cookie.token)),
  ]),
  bySdk('a session that a claim validator refuses', BLOCKED, (given) =>
    linesOf(given.blockedCookie),
  ),
  malformed('garbage', () => [cookie('garbage')]),
  malformed('an empty cookie', () => [cookie('')]),
  malformed('a cookie without a value', () => ['Cookie: sAccessToken']),
  malformed('a service token', (given) => [cookie(given.service)]),
  malformed('a minted session', (given) => [cookie(given.mintedSession)]),
  malformed('a quoted session', (given) => [cookie(`"${given.cookie.token}"`)]),
  malformed('a session with percent signs', (given) => [
    cookie(given.cookie.token.replaceAll('.', '%2E')),
  ]),
  malformed('a session whose name has a percent sign', (given) => [
    cookie(given.cookie.token, 's%41ccessToken'),
  ]),
]

/** Two cookies that one reader or another takes for the session's. */
const withTwo: readonly Cell[] = [
  malformed('of one name', ({ cookie: { token } }) => [cookie(`${token}; sAccessToken=${token}`)]),
  malformed('in two headers', ({ cookie: { token } }) => [cookie(token), cookie(token)]),
  malformed('the other without a value', (given) => [
    cookie(`${given.cookie.token}; sAccessToken`),
  ]),
  malformed('the other with a space', (given) => [
    cookie(`x; sAccessToken =${given.cookie.token}`),
  ]),
  malformed('the other with a percent sign', (given) => [
    cookie(`x; s%41ccessToken=${given.cookie.token}`),
  ]),
  malformed('the other with a percent sign, and before it', (given) => [
    cookie('x', '%73AccessToken'),
    cookie(given.cookie.token),
  ]),
]

const withHeader: readonly Cell[] = [
  asService('a good service token', (given) => [bearer(given.service)]),
  asService('a good service token under a scheme in small letters', (given) => [
    `authorization: bearer ${given.service}`,
  ]),
  byServiceAuth('a service token with another signature', (given) => [
    bearer(resigned(given.service)),
  ]),
  {
    ...asService('a service token without the permission', (given) => [
      bearer(given.serviceWithoutPermission),
    ]),
    answer: '403 of a service',
  },
  asUser('a good session', (given) => linesOf(given.header)),
  asUser('a good session, and the wish for a cookie the next time', (given) => [
    ...linesOf(given.header),
    'st-auth-mode: cookie',
    'rid: session',
  ]),
  bySdk(
    'a session under a scheme in small letters, which the SDK does not read',
    UNAUTHORISED,
    (given) => [`Authorization: bearer ${given.header.token}`],
  ),
  byServiceAuth('a good session after two spaces', (given) => [bearer(` ${given.header.token}`)]),
  asUser('the session of a cookie', (given) => [bearer(given.cookie.token)]),
  bySdk('a session with another signature', TRY_REFRESH, (given) => [
    bearer(resigned(given.header.token)),
  ]),
  bySdk('a session that a claim validator refuses', BLOCKED, (given) =>
    linesOf(given.blockedHeader),
  ),
  ...['3', '4', '6'].map((version) =>
    bySdk(`a session of version ${version} instead`, TRY_REFRESH, (given) => [
      bearer(withVersion(given.header.token, version)),
    ]),
  ),
  bySdk('a session of version 2 instead', UNAUTHORISED, (given) => [
    bearer(withVersion(given.header.token, '2')),
  ]),
  byServiceAuth('a session of old', () => [bearer(sessionOfOld())]),
  bySdk('a service token with an added version', UNAUTHORISED, (given) => [
    bearer(withVersion(given.service, '5')),
  ]),
  bySdk('a minted session with an added version', TRY_REFRESH, (given) => [
    bearer(withVersion(given.mintedSession, '4')),
  ]),
  byServiceAuth('a session without its version', (given) => [
    bearer(withVersion(given.header.token, undefined)),
  ]),
  byServiceAuth('a minted session', (given) => [bearer(given.mintedSession)]),
  // Whoever may mint may call as a service; as a user, nobody may who has no session.
  asService('a minted session and service', (given) => [bearer(given.mintedBoth)]),
  ...['Bearer garbage', 'Bearer a.b.c', 'Bearer', 'garbage', 'Basic Ym9iOm1l', ''].map((value) =>
    byServiceAuth(JSON.stringify(value), () => [`Authorization: ${value}`]),
  ),
  byServiceAuth('two service tokens', ({ service }) => [bearer(service), bearer(service)]),
  byServiceAuth('two sessions', ({ header: { token } }) => [bearer(token), bearer(token)]),
]

/** Any `Authorization`, and any cookie of a session's name. */
const ANYTHING: readonly [string, Send][] = [
  ['a session in the header', ({ header }) => linesOf(header)],
  ['a service token', ({ service }) => [bearer(service)]],
  ['a minted session', ({ mintedSession }) => [bearer(mintedSession)]],
  ['garbage', () => [bearer('garbage')]],
  ['a scheme alone', () => ['Authorization: Bearer ']],
  ['another scheme', () => ['Authorization: Basic Ym9iOm1l']],
  ['nothing in the header', () => ['Authorization:']],
]
const ANY_COOKIE: readonly [string, (given: Presents) => string][] = [
  ['a session', ({ cookie: { token } }) => token],
  ['a service token', ({ service }) => service],
  ['a minted session', ({ mintedSession }) => mintedSession],
  ['garbage', () => 'garbage'],
  ['garbage in the form of a token', () => 'a.b.c'],
  ['nothing', () => ''],
]

const withBoth: readonly Cell[] = ANYTHING.flatMap(([inHeader, lines]) =>
  ANY_COOKIE.map(([inCookie, value]) => ({
    ...malformed(`${inHeader}, and a cookie of ${inCookie}`, (given) => [
      ...lines(given),
      cookie(value(given)),
    ]),
    told: 'credentials_ambiguous',
  })),
)

const within = (place: string, cells: readonly Cell[]): readonly Cell[] =>
  cells.map((cell) => ({ ...cell, title: `${place}: ${cell.title}` }))

/** The table of what may be presented, cell by cell. */
export const CELLS: readonly Cell[] = [
  missing('nothing', () => []),
  missing('another cookie', () => [cookie('dark', 'theme')]),
  ...within('in the cookie', withCookie),
  ...within('in two cookies', withTwo),
  ...within('in the header', withHeader),
  ...within('in both', withBoth),
]
