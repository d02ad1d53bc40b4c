import cookieParser from 'cookie-parser'
import type { Express, RequestHandler } from 'express'
import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { startIdentityCore } from '../support/core/identity-core/identity-core.js'
import { EXPRESS_MAJORS, type ExpressMajor } from '../support/receiver/express-majors.js'
import { until } from '../support/until.js'
import { type BackendSdk, logIn, mint, openBackendSdks } from './backend-sdk.js'
import {
  type AppOptions,
  answerTo,
  blocking,
  openApp,
  openSessionReceiver,
  SERVICE_CLAIMS,
} from './gate.js'
import { bearer, linesOf, type Presents, resigned } from './presents.js'
import { type Asked, CELLS } from './walk-cells.js'

const USER = '200 {"name":"user","id":"alice"}'
const SERVICE = '200 {"name":"service","id":"billing"}'
const INVALID = '401 of an invalid token'
const TRY_REFRESH = '401 {"message":"try refresh token"}'
const SESSION_CLAIMS = { sub: 'mallory', sessionHandle: 'a-handle', refreshTokenHash1: 'a-hash' }

type App = Awaited<ReturnType<typeof openApp>>

const core = await startIdentityCore()
const sdks = openBackendSdks(core)
const asked: Asked[] = []
const told: string[] = []

const keySetUri = () => `${core.issuer}/auth/jwt/jwks.json`
const kidOf = (token: string) => String(decodeProtectedHeader(token).kid)

async function presentAt(url: string, sdk: BackendSdk): Promise<Presents> {
  return {
    cookie: await logIn(url, 'cookie'),
    header: await logIn(url, 'header'),
    blockedCookie: await logIn(url, 'cookie', 'blocked'),
    blockedHeader: await logIn(url, 'header', 'blocked'),
    service: await mint(sdk, SERVICE_CLAIMS),
    serviceWithoutPermission: await mint(sdk, { ...SERVICE_CLAIMS, permissions: [] }),
    mintedSession: await mint(sdk, SESSION_CLAIMS),
    mintedBoth: await mint(sdk, { ...SESSION_CLAIMS, ...SERVICE_CLAIMS }),
  }
}

const bare = { parser: 'without cookie-parser', before: undefined }
const parsed = { parser: 'with cookie-parser', before: cookieParser() as RequestHandler }

const [EXPRESS_4, EXPRESS_5] = EXPRESS_MAJORS as [ExpressMajor, ExpressMajor]
const suites = [
  { ...EXPRESS_4, antiCsrf: 'VIA_TOKEN', ...bare },
  { ...EXPRESS_5, antiCsrf: 'NONE', ...bare },
  { ...EXPRESS_5, antiCsrf: 'VIA_TOKEN', ...parsed },
] as const

interface Walk {
  readonly app: App
  readonly given: Presents
}

const walks = new Map<object, Walk>()

function walkOf(suite: object): Walk {
  const walk = walks.get(suite)
  if (walk === undefined) throw new Error('the app has not been opened')
  return walk
}

beforeAll(async () => {
  for (const suite of suites) {
    const sdk = sdks[suite.antiCsrf]
    const app = await openApp({ ...suite, sdk, asked, told, jwksUri: keySetUri() })
    walks.set(suite, { app, given: await presentAt(app.url, sdk) })
  }
})
afterAll(async () => {
  await Promise.all([...walks.values()].map(({ app }) => app.close()))
  await core.close()
})
beforeEach(() => {
  asked.length = 0
  told.length = 0
})

describe.each(suites)('$major, anti-CSRF $antiCsrf, $parser', (suite) => {
  it('asks whom it should, and answers and tells so, in each cell of the table', async () => {
    const { app, given } = walkOf(suite)
    const walked = []
    for (const { title, send } of CELLS) {
      asked.length = 0
      told.length = 0
      const answer = await answerTo(app, send(given))
      walked.push({ title, asked: asked.join() || 'nobody', answer, told: told.join() })
    }
    expect(walked).toEqual(CELLS.map(({ send: _, ...expected }) => expected))
  })

  it('leaves the anti-CSRF token to the SDK: for the cookie, not for the header', async () => {
    const { app, given } = walkOf(suite)
    const { cookie, header } = given
    const withoutToken = suite.antiCsrf === 'VIA_TOKEN' ? TRY_REFRESH : USER
    expect(await answerTo(app, [`Cookie: sAccessToken=${cookie.token}`])).toBe(withoutToken)
    expect(await answerTo(app, [bearer(header.token)])).toBe(USER)
  })

  it.each(['OPTIONS', 'TRACE'])(
    'refuses a session for %s, where the SDK has none',
    async (method) => {
      const { app, given } = walkOf(suite)
      for (const session of [given.cookie, given.header]) {
        expect(await answerTo(app, linesOf(session), method)).toBe(INVALID)
      }
      expect(await answerTo(app, [bearer(given.service)], method)).toBe(SERVICE)
      expect(asked).toEqual(['the SDK', 'the SDK', 'serviceAuth'])
      expect(told).toEqual(['identity_missing', 'identity_missing', 'accepted'])
    },
  )

  it('passes the answers of the SDK on to the byte', async () => {
    const { app, given } = walkOf(suite)
    const sdk = sdks[suite.antiCsrf]
    const mount = (to: Express) => to.use(sdk.verifySession(blocking))
    const alone = await openSessionReceiver({ ...suite, sdk, mount })
    onTestFinished(() => alone.close())
    for (const { token } of [given.blockedCookie, given.blockedHeader]) {
      for (const headers of [[bearer(token)], [bearer(resigned(token))]]) {
        const answer = await app.raw({ method: 'POST', headers })
        expect(answer).toBe(await alone.raw({ method: 'POST', headers }))
        expect(answer).toMatch(/^HTTP\/1\.1 40[13] /)
      }
    }
  })
})

describe('after a rotation', () => {
  beforeAll(() => core.rotate())

  it.each(suites)('takes old and new, $major, anti-CSRF $antiCsrf, $parser', async (suite) => {
    const { app, given } = walkOf(suite)
    const cookie = await logIn(app.url, 'cookie')
    const header = await logIn(app.url, 'header')
    const service = await mint(sdks[suite.antiCsrf], SERVICE_CLAIMS)
    // For half a second after a fetch the SDK fetches no keys, and refuses those that it lacks.
    const isKnown = async () => (await answerTo(app, linesOf(cookie))) === USER
    await until('the new key is known', isKnown)
    for (const session of [header, given.cookie, given.header]) {
      expect(await answerTo(app, linesOf(session))).toBe(USER)
    }
    for (const token of [service, given.service]) {
      expect(await answerTo(app, [bearer(token)])).toBe(SERVICE)
    }
  })
})

describe('a service and the SDK', () => {
  async function start(more: Partial<AppOptions>): Promise<App> {
    const sdk = sdks.NONE
    const { express } = EXPRESS_5
    const app = await openApp({ express, sdk, asked, told, jwksUri: keySetUri(), ...more })
    onTestFinished(() => app.close())
    return app
  }

  it('requires a session, whatever the SDK is told', async () => {
    const app = await start({ verifying: { sessionRequired: false } })
    const { token } = await logIn(app.url, 'header')
    const noSession = `${token.split('.')[0]}.e30.AAAA`
    expect(await answerTo(app, [])).toBe('401 without a token')
    expect(await answerTo(app, [bearer(token)])).toBe(USER)
    expect(await answerTo(app, [bearer(noSession)])).toBe(INVALID)
    expect(await answerTo(app, [`Cookie: sAccessToken=${noSession}`])).toBe(INVALID)
  })

  it('refuses a session that has been ended, where the SDK checks the database', async () => {
    const app = await start({ verifying: { checkDatabase: true } })
    const { token } = await logIn(app.url, 'header')
    expect(await answerTo(app, [bearer(token)])).toBe(USER)
    const session = await sdks.NONE.sessions.getSessionWithoutRequestResponse(token)
    await session.revokeSession()
    expect(await answerTo(app, [bearer(token)])).toBe('401 {"message":"unauthorised"}')
  })

  it('refuses a session whose key is denied, without asking the SDK', async () => {
    const { url } = await start({})
    const [cookie, header] = [await logIn(url, 'cookie'), await logIn(url, 'header')]
    const app = await start({ deniedKeys: [kidOf(cookie.token)] })
    expect(await answerTo(app, linesOf(cookie))).toBe(INVALID)
    expect(await answerTo(app, linesOf(header))).toBe(INVALID)
    expect(told).toEqual(['key_denied', 'key_denied'])
    expect(asked).toEqual([])
  })

  it('refuses a cookie where the app holds another of that name', async () => {
    const { url } = await start({})
    const [sent, held] = [await logIn(url, 'cookie'), await logIn(url, 'cookie', 'bob')]
    const header = await logIn(url, 'header')
    const before: RequestHandler = (request, _response, next) => {
      request.cookies = { sAccessToken: held.token }
      next()
    }
    const app = await start({ before })
    expect(await answerTo(app, linesOf(sent))).toBe(INVALID)
    expect(await answerTo(app, [])).toBe(INVALID)
    expect(await answerTo(app, linesOf(header))).toBe(INVALID)
    const malformed = 'session_token_malformed'
    expect(told).toEqual([malformed, malformed, 'credentials_ambiguous'])
    expect(asked).toEqual([])
  })

  it('answers a service with the 503 where there is no key set, and a user as ever', async () => {
    const app = await start({ jwksUri: 'http://127.0.0.1:6700/jwks.json' })
    const service = await mint(sdks.NONE, SERVICE_CLAIMS)
    expect(await answerTo(app, [bearer(service)])).toBe('503 of a service')
    expect(await answerTo(app, linesOf(await logIn(app.url, 'header')))).toBe(USER)
  })
})
