import { afterAll, describe, expect, it } from 'vitest'
import { startIdentityCore } from '../../example-app/identity-core/identity-core.js'
import { knowToken } from '../support/secret-search/index.js'
import { API_KEY } from './core-client.js'
import { decodeToken } from './decode-token.js'

const NOW_MS = 1_800_000_000_500
const NOW_SECONDS = 1_800_000_000
const HOUR_SECONDS = 3600
const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/)

let now = NOW_MS

const core = await startIdentityCore({ apiKey: API_KEY, clock: () => now })
afterAll(() => core.close())

const wanted = {
  userId: 'alice',
  userDataInJWT: { iss: 'https://api.example.com/auth' },
  userDataInDatabase: {},
  enableAntiCsrf: false,
}

async function post(path: string, body: object) {
  const response = await fetch(`${core.url}${path}`, {
    method: 'POST',
    headers: { 'api-key': API_KEY, rid: 'session', 'cdi-version': '5.4' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, text, json: () => JSON.parse(text) }
}

async function createSession(change: object = {}) {
  const session = (await post('/public/recipe/session', { ...wanted, ...change })).json()
  knowToken(session.accessToken.token)
  return session
}

const verification = (accessToken: string, change: object = {}) => ({
  accessToken,
  doAntiCsrfCheck: false,
  enableAntiCsrf: false,
  checkDatabase: true,
  ...change,
})

describe('a new session', () => {
  it('has a token whose header has a version, and the claims of the core beside the payload', async () => {
    const { accessToken, session } = await createSession()
    const { header, payload } = decodeToken(accessToken.token)
    expect(header).toBe(`{"kid":"d-${NOW_MS}","typ":"JWT","version":"5","alg":"RS256"}`)
    expect(JSON.parse(payload)).toStrictEqual({
      sub: 'alice',
      exp: NOW_SECONDS + HOUR_SECONDS,
      iat: NOW_SECONDS,
      tId: 'public',
      rsub: 'alice',
      sessionHandle: session.handle,
      refreshTokenHash1: expect.stringMatching(/^[0-9a-f]{64}$/),
      parentRefreshTokenHash1: null,
      antiCsrfToken: null,
      iss: 'https://api.example.com/auth',
    })
  })

  it('is told with its tokens and their times in milliseconds', async () => {
    const createdTime = NOW_SECONDS * 1000
    expect(await createSession({ enableAntiCsrf: true })).toEqual({
      status: 'OK',
      session: {
        handle: UUID,
        userId: 'alice',
        recipeUserId: 'alice',
        userDataInJWT: wanted.userDataInJWT,
        tenantId: 'public',
      },
      accessToken: {
        token: expect.any(String),
        createdTime,
        expiry: createdTime + HOUR_SECONDS * 1000,
      },
      refreshToken: { token: expect.any(String), createdTime: NOW_MS, expiry: expect.any(Number) },
      antiCsrfToken: UUID,
    })
  })

  it('is signed by the static key where that is asked for', async () => {
    const { accessToken } = await createSession({ useDynamicSigningKey: false })
    expect(JSON.parse(decodeToken(accessToken.token).header).kid).toMatch(/^s-/)
  })

  it.each([
    ['userId', { userId: 1 }, "Field name 'userId' is invalid in JSON input"],
    [
      'enableAntiCsrf',
      { enableAntiCsrf: null },
      "Field name 'enableAntiCsrf' is invalid in JSON input",
    ],
    ['userDataInJWT', { userDataInJWT: [] }, "Field name 'userDataInJWT' is invalid in JSON input"],
    [
      'userDataInDatabase',
      { userDataInDatabase: 'x' },
      "Field name 'userDataInDatabase' is invalid in JSON input",
    ],
    ['payload', { userDataInJWT: { sub: 'bob' } }, 'The user payload contains protected field'],
  ])('is refused in text for a wrong %s', async (_, change, expected) => {
    const { status, text } = await post('/recipe/session', { ...wanted, ...change })
    expect({ status, text }).toEqual({ status: 400, text: `${expected}\n` })
  })
})

describe('verifying a session', () => {
  it('answers with it until it is removed', async () => {
    const { accessToken, session } = await createSession()
    const verify = () => post('/recipe/session/verify', verification(accessToken.token))
    expect((await verify()).json()).toEqual({ status: 'OK', session })

    const removal = { sessionHandles: [session.handle, 'unknown'] }
    const removed = await post('/recipe/session/remove', removal)
    expect(removed.json()).toEqual({ status: 'OK', sessionHandlesRevoked: [session.handle] })
    expect((await verify()).json()).toMatchObject({ status: 'UNAUTHORISED' })
  })

  it('asks for a refresh where the token or the anti-CSRF token is wrong', async () => {
    const { accessToken, antiCsrfToken } = await createSession({ enableAntiCsrf: true })
    const { token } = accessToken
    const asked = { doAntiCsrfCheck: true, enableAntiCsrf: true }
    const statusOf = async (body: object) =>
      (await post('/recipe/session/verify', body)).json().status
    expect(await statusOf(verification(token, { ...asked, antiCsrfToken }))).toBe('OK')
    expect(await statusOf(verification(token, asked))).toBe('TRY_REFRESH_TOKEN')
    expect(await statusOf(verification('no.token.'))).toBe('TRY_REFRESH_TOKEN')
    expect(await statusOf(verification(`${token}A`))).toBe('TRY_REFRESH_TOKEN')
    now += (HOUR_SECONDS + 1) * 1000
    expect(await statusOf(verification(token))).toBe('TRY_REFRESH_TOKEN')
    now = NOW_MS
  })

  it('knows no token of the JWT interface', async () => {
    const { accessToken } = await createSession()
    const payload = JSON.parse(decodeToken(accessToken.token).payload)
    const minting = { algorithm: 'RS256', jwksDomain: 'x', payload, validity: 300 }
    const { jwt } = (await post('/recipe/jwt', { ...minting, useStaticSigningKey: false })).json()
    knowToken(jwt)
    const { status } = (await post('/recipe/session/verify', verification(jwt))).json()
    expect(status).toBe('TRY_REFRESH_TOKEN')
  })
})

it('knows no user', async () => {
  const headers = { 'api-key': API_KEY }
  const response = await fetch(`${core.url}/user/id?userId=alice`, { headers })
  expect(await response.json()).toEqual({ status: 'UNKNOWN_USER_ID_ERROR' })
})
