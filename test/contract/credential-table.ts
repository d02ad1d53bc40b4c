import type { Express, RequestHandler } from 'express'
import {
  acceptOneOf,
  type DecisionEvent,
  requirePermissions,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import type { TestIssuer } from 'express-service-auth/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { COOKIE, parseCookies, type Sessions } from '../support/core/sessions.js'
import type { RawRequest } from '../support/network/raw-exchange.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN, NO_TOKEN } from '../support/receiver/refusal-bytes.js'

interface Tokens {
  readonly service: string
  readonly session: string
  readonly forbidden: string
  readonly minted: string
}

interface Row {
  readonly title: string
  readonly send: (tokens: Tokens) => RawRequest
  /** Who is asked to verify. */
  readonly asked: 'nobody' | 'the service' | 'the session'
  /** What comes of it: the bytes, or that the answer is the verifier's own, or a pass. */
  readonly answer: 'pass' | 'its own' | typeof NO_TOKEN | typeof INVALID_TOKEN
  /** What the middleware tells of it; nothing where a verifier has answered. */
  readonly reason?: DecisionEvent['outcome'] | Reason
  /** An app that parses cookies, as this. */
  readonly parse?: (header: string) => Record<string, string>
  readonly deniesKey?: boolean
}

type Reason = Exclude<DecisionEvent, { outcome: 'accepted' }>['reason']

const bearer = (token: string): RawRequest => ({ headers: [`Authorization: Bearer ${token}`] })
const cookie = (value: string): RawRequest => ({ headers: [`Cookie: ${COOKIE}=${value}`] })
const lines = (...headers: string[]): RawRequest => ({ headers })

/** The same token with another JOSE header, signed by nobody. */
function withHeader(token: string, change: (header: object) => object): string {
  const [header = '', ...rest] = token.split('.')
  const changed = change(JSON.parse(Buffer.from(header, 'base64url').toString()))
  return [Buffer.from(JSON.stringify(changed)).toString('base64url'), ...rest].join('.')
}

const versioned = (token: string, version: unknown): string =>
  withHeader(token, (header) => ({ ...header, version }))

const flipped = (token: string): string =>
  token.endsWith('A') ? `${token.slice(0, -1)}Q` : `${token.slice(0, -1)}A`

const missing = { asked: 'nobody', answer: NO_TOKEN, reason: 'credentials_missing' } as const
const ambiguous = {
  asked: 'nobody',
  answer: INVALID_TOKEN,
  reason: 'credentials_ambiguous',
} as const
const malformed = {
  asked: 'nobody',
  answer: INVALID_TOKEN,
  reason: 'session_token_malformed',
} as const
const nobodyKnown = {
  asked: 'the session',
  answer: INVALID_TOKEN,
  reason: 'identity_missing',
} as const
const ofService = { asked: 'the service', answer: 'its own' } as const
const ofSession = { asked: 'the session', answer: 'its own' } as const
const service = { asked: 'the service', answer: 'pass', reason: 'accepted' } as const
const session = { asked: 'the session', answer: 'pass', reason: 'accepted' } as const

const ROWS: readonly Row[] = [
  { title: 'nothing', send: () => ({}), ...missing },
  { title: 'another cookie', send: () => lines('Cookie: a=b; sFrontToken=c'), ...missing },
  { title: 'a session cookie', send: (t) => cookie(t.session), ...session },
  {
    title: 'a session cookie among others, in several headers',
    send: (t) => lines('Cookie: a=b; c', `Cookie: d=e; ${COOKIE}=${t.session} ;f=g`),
    ...session,
  },
  {
    title: 'a session cookie with a bad signature',
    send: (t) => cookie(flipped(t.session)),
    ...ofSession,
  },
  { title: 'a session cookie that is forbidden', send: (t) => cookie(t.forbidden), ...ofSession },
  {
    title: 'a session cookie where cookies are parsed',
    send: (t) => cookie(t.session),
    parse: parseCookies,
    ...session,
  },
  { title: 'a cookie of garbage', send: () => cookie('garbage'), ...malformed },
  { title: 'an empty cookie', send: () => cookie(''), ...malformed },
  { title: 'a cookie without a value', send: () => lines(`Cookie: ${COOKIE}`), ...malformed },
  { title: 'a minted token in the cookie', send: (t) => cookie(t.minted), ...malformed },
  { title: 'a service token in the cookie', send: (t) => cookie(t.service), ...malformed },
  { title: 'a session cookie in quotes', send: (t) => cookie(`"${t.session}"`), ...malformed },
  { title: 'a service token', send: (t) => bearer(t.service), ...service },
  {
    title: 'a service token, the scheme in lower case',
    send: (t) => lines(`authorization: bearer ${t.service}`),
    ...service,
  },
  {
    title: 'a service token with a bad signature',
    send: (t) => bearer(flipped(t.service)),
    ...ofService,
  },
  { title: 'a session token', send: (t) => bearer(t.session), ...session },
  {
    title: 'a session token where cookies are parsed',
    send: (t) => bearer(t.session),
    parse: parseCookies,
    ...session,
  },
  {
    title: 'a session token with a bad signature',
    send: (t) => bearer(flipped(t.session)),
    ...ofSession,
  },
  { title: 'a session token that is forbidden', send: (t) => bearer(t.forbidden), ...ofSession },
  {
    title: 'a session token, the scheme in lower case, which its verifier does not know',
    send: (t) => lines(`Authorization: bearer ${t.session}`),
    ...ofSession,
  },
  ...['3', '4', '6', '', 5, null, ['5'], {}].map((version) => ({
    title: `a session token with the version ${JSON.stringify(version)} instead`,
    send: (t: Tokens) => bearer(versioned(t.session, version)),
    ...ofSession,
  })),
  {
    title: 'a minted token with an added version',
    send: (t) => bearer(versioned(t.minted, '4')),
    ...ofSession,
  },
  {
    title: 'a service token with an added version',
    send: (t) => bearer(versioned(t.service, '5')),
    ...ofSession,
  },
  {
    title: 'a session token with its version taken away',
    send: (t) => bearer(versioned(t.session, undefined)),
    ...ofService,
  },
  { title: 'a minted token with session claims', send: (t) => bearer(t.minted), ...ofService },
  ...['Bearer garbage', 'Bearer', 'Bearer a.b.c', 'Basic Ym9iOm1l', '', 'garbage'].map((value) => ({
    title: `the header ${JSON.stringify(value)}`,
    send: () => lines(`Authorization: ${value}`),
    ...ofService,
  })),
  {
    title: 'two service tokens',
    send: (t) => lines(`Authorization: Bearer ${t.service}`, `Authorization: Bearer ${t.service}`),
    ...ofService,
  },
  {
    title: 'two session tokens',
    send: (t) => lines(`Authorization: Bearer ${t.session}`, `Authorization: Bearer ${t.session}`),
    ...ofService,
  },
  ...['', 'Bearer garbage', 'Basic Ym9iOm1l', 'Bearer '].flatMap((value) =>
    ['', 'garbage', 'a.b.c'].map((held) => ({
      title: `the header ${JSON.stringify(value)} beside the cookie ${JSON.stringify(held)}`,
      send: () => lines(`Authorization: ${value}`, `Cookie: ${COOKIE}=${held}`),
      ...ambiguous,
    })),
  ),
  ...(['service', 'session', 'minted'] as const).flatMap((one) =>
    (['service', 'session', 'minted'] as const).map((other) => ({
      title: `a ${one} token beside a ${other} token in the cookie`,
      send: (t: Tokens) =>
        lines(`Authorization: Bearer ${t[one]}`, `Cookie: ${COOKIE}=${t[other]}`),
      ...ambiguous,
    })),
  ),
  {
    title: 'a session token where the parsed cookies hold one that was not sent',
    send: (t) => bearer(t.session),
    parse: () => ({ [COOKIE]: 'x' }),
    ...ambiguous,
  },
  ...(['OPTIONS', 'TRACE'] as const).flatMap((method) => [
    {
      title: `${method} with a session cookie, which its verifier lets pass without one`,
      send: (t: Tokens) => ({ method, ...cookie(t.session) }),
      ...nobodyKnown,
    },
    {
      title: `${method} with a session token, which its verifier lets pass without one`,
      send: (t: Tokens) => ({ method, ...bearer(t.session) }),
      ...nobodyKnown,
    },
  ]),
  ...[COOKIE, ` ${COOKIE} `, '%73AccessToken', 'sAccess%54oken', `%20${COOKIE}`].flatMap((name) => [
    {
      title: `a session cookie and one of the name ${JSON.stringify(name)}`,
      send: (t: Tokens) => lines(`Cookie: ${COOKIE}=${t.session}; ${name}=${t.session}`),
      ...malformed,
    },
    {
      title: `one of the name ${JSON.stringify(name)} before a session cookie, in two headers`,
      send: (t: Tokens) => lines(`Cookie: ${name}=x`, `Cookie: ${COOKIE}=${t.session}`),
      ...malformed,
    },
  ]),
  {
    title: 'a session cookie whose name is spelt with a percent sign',
    send: (t) => lines(`Cookie: sAccess%54oken=${t.session}`),
    ...malformed,
  },
  {
    title: 'a session cookie and its name alone',
    send: (t) => lines(`Cookie: ${COOKIE}=${t.session}; ${COOKIE}`),
    ...malformed,
  },
  ...[{}, { [COOKIE]: 'a.b.c' }].map((parsed) => ({
    title: `a session cookie where the parsed cookies are ${JSON.stringify(parsed)}`,
    send: (t: Tokens) => cookie(t.session),
    parse: () => parsed,
    ...malformed,
  })),
  {
    title: 'no cookie where the parsed cookies hold one',
    send: () => ({}),
    parse: () => ({ [COOKIE]: 'a.b.c' }),
    ...malformed,
  },
  ...[cookie, bearer].map((carry) => ({
    title: `a session of a denied key as ${carry === cookie ? 'a cookie' : 'a bearer token'}`,
    send: (t: Tokens) => carry(t.session),
    asked: 'nobody' as const,
    answer: INVALID_TOKEN,
    reason: 'key_denied' as const,
    deniesKey: true,
  })),
]

/** What is walked: sessions that a verifier accepts, and the core that also mints service tokens. */
export interface TableOptions {
  readonly issuer: TestIssuer
  /** Opened before the walk. */
  readonly open: () => Promise<Sessions> | Sessions
}

/** Walks the table of requests cell by cell, by real HTTP on both majors of Express. */
export function walkTable(title: string, { issuer, open }: TableOptions): void {
  describe.each(EXPRESS_MAJORS)(`${title}, on $major`, ({ express }) => {
    let tokens: Tokens
    let sessions: Sessions
    beforeAll(async () => {
      sessions = await open()
      const [session, forbidden, minted] = await Promise.all([
        sessions.session(),
        sessions.forbidden(),
        sessions.minted(),
      ])
      tokens = { service: issuer.token(), session, forbidden, minted }
    })

    it.each(ROWS)('$title', async (row) => {
      const request = row.send(tokens)
      const gate = openGate(issuer, sessions, row)
      const receiver = await startReceiver({ express, ...gate.app })
      const answer = await receiver.raw(request)
      expect(gate.asked).toEqual(row.asked === 'nobody' ? [] : [row.asked])
      expect(gate.told.map(summaryOf)).toEqual(row.reason === undefined ? [] : [row.reason])
      expect(receiver.errors).toEqual([])
      if (row.answer === 'pass') {
        const [name, id] = row.asked === 'the service' ? ['service', 'billing'] : ['user', 'user-1']
        expect(answer).toContain(JSON.stringify({ name, id }))
        expect(gate.told[0]?.credential).toBe(name)
        return
      }
      const { verify } = row.asked === 'the service' ? gate.service : sessions
      const alone = { express, mount: (app: Express) => app.use(gate.parse, verify) }
      const expected =
        row.answer === 'its own' ? await (await startReceiver(alone)).raw(request) : row.answer
      expect(answer).toMatch(/ 40[13] /)
      expect(answer).toBe(expected)
      expect(receiver.handled).toBe(0)
    })
  })
}

const summaryOf = (event: DecisionEvent): string =>
  event.outcome === 'accepted' ? event.outcome : event.reason

/** An endpoint for both, and a note of what happens in it. */
function openGate(issuer: TestIssuer, sessions: Sessions, { parse, deniesKey }: Row) {
  const asked: Row['asked'][] = []
  const told: DecisionEvent[] = []
  const service = serviceCredential(
    authFor(
      issuer.policy({ onDecision: ({ by }) => by === 'serviceAuth' && asked.push('the service') }),
    ),
  )
  const session = sessionCredential(
    (request, response, next) => {
      asked.push('the session')
      return sessions.verify(request, response, next)
    },
    deniesKey ? { denylist: { keys: [issuer.kid] }, issuer: issuer.url } : {},
  )
  const gate = acceptOneOf(
    [
      { name: 'service', ...service, authorize: requirePermissions('orders:read') },
      { name: 'user', ...session },
    ],
    { onDecision: (event) => told.push(event) },
  )
  const parseCookies: RequestHandler = (request, _response, next) => {
    if (parse) request.cookies = parse(request.headers.cookie ?? '')
    next()
  }
  const answer: RequestHandler = (request, response) => {
    const { name, identity } = gate.credentialOf(request)
    response.json({ name, id: name === 'service' ? identity.name : sessions.userOf(identity) })
  }
  return {
    asked,
    told,
    service,
    parse: parseCookies,
    app: { mount: (app: Express) => app.use(parseCookies, gate), handler: answer },
  }
}
