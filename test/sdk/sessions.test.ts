import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { IdentityCore } from '../../example-app/identity-core/identity-core.js'
import {
  ANTI_CSRF,
  type AntiCsrf,
  type BackendSdk,
  type FrontendSession,
  logIn,
  mint,
  openBackendSdks,
  startCore,
} from '../support/core/backend-sdk.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import type { Receiver } from '../support/receiver/open-receiver.js'
import { openSessionReceiver } from '../support/receiver/session-receiver.js'
import { sessionOfOld } from './presents.js'

const PASSED = { status: 200, text: '{"user":"alice"}' }
const WITHOUT_SESSION = { status: 200, text: '{"user":null}' }
const TRY_REFRESH = { status: 401, text: '{"message":"try refresh token"}' }
const UNAUTHORISED = { status: 401, text: '{"message":"unauthorised"}' }

let core: IdentityCore
let sdks: Readonly<Record<AntiCsrf, BackendSdk>>

beforeAll(async () => {
  core = await startCore()
  sdks = openBackendSdks(core)
})
afterAll(() => core.close())

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const suites = EXPRESS_MAJORS.flatMap((major) =>
  ANTI_CSRF.map((antiCsrf) => ({ ...major, antiCsrf })),
)

describe.each(suites)('the SDK on $major, anti-CSRF $antiCsrf', ({ express, antiCsrf }) => {
  let receiver: Receiver
  let lenient: Receiver
  let cookie: FrontendSession
  let header: FrontendSession

  beforeAll(async () => {
    const sdk = sdks[antiCsrf]
    const open = (sessionRequired: boolean) =>
      openSessionReceiver({
        express,
        sdk,
        mount: (app) => app.use(sdk.verifySession({ sessionRequired })),
      })
    ;[receiver, lenient] = await Promise.all([open(true), open(false)])
    ;[cookie, header] = await Promise.all([
      logIn(receiver.url, 'cookie'),
      logIn(receiver.url, 'header'),
    ])
  })
  afterAll(() => Promise.all([receiver.close(), lenient.close()]))

  const send = async (headers: object, { to = receiver, method = 'POST' } = {}) => {
    const { status, text } = await to.call(undefined, { method, headers: { ...headers } })
    return { status, text }
  }

  it('ignores a token in the header that has no form of a session, and takes the cookie', async () => {
    const service = await mint(sdks.NONE, { sub: 'billing', aud: 'orders', source: 'microservice' })
    expect(await send(bearer(service))).toEqual(UNAUTHORISED)
    // This one has such a form, and the core is asked about it.
    expect(await send({ ...cookie.headers, ...bearer(sessionOfOld()) })).toEqual(TRY_REFRESH)
    for (const token of [service, 'garbage', '']) {
      expect(await send({ ...cookie.headers, ...bearer(token) })).toEqual(PASSED)
    }
  })

  it('takes a minted token with the claims of a session for one', async () => {
    const minted = await mint(sdks.NONE, {
      sub: 'mallory',
      sessionHandle: 'h',
      refreshTokenHash1: 'r',
    })
    const passed = { status: 200, text: '{"user":"mallory"}' }
    expect(await send(bearer(minted))).toEqual(passed)
    expect(await send({ cookie: `sAccessToken=${minted}` }, { method: 'GET' })).toEqual(passed)
  })

  it('calls next() without a session where none is required', async () => {
    for (const headers of [{}, bearer('garbage'), { cookie: 'sAccessToken=garbage' }]) {
      expect(await send(headers, { to: lenient })).toEqual(WITHOUT_SESSION)
      expect(await send(headers)).toEqual(UNAUTHORISED)
    }
    expect(await send(header.headers, { to: lenient })).toEqual(PASSED)
  })
})
