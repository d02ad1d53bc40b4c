import { gzipSync } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import { manualClock } from '../../support/manual-clock.js'
import { refusingOrigin } from '../../support/network/free-port.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { API_KEY } from '../claims.js'
import { failure, sourceAt, tokenOf } from '../kit.js'
import {
  answers,
  breaksOff,
  hangs,
  hangsUp,
  type Lie,
  minted,
  mints,
  startLyingCore,
} from '../lying-core.js'

const TIMEOUT_MS = 200
const OK = { status: 'OK' }
const LIMIT = 16 * 1024
const LACKS_RS256 = '{"status":"UNSUPPORTED_ALGORITHM_ERROR"}'

/** A token of a core that tells the truth, in an answer of so many bytes. */
const padded =
  (bytes: number): Lie =>
  (response, asked) =>
    answers(200, minted(asked).padEnd(bytes))(response, asked)

const errorAt = (url: string): Promise<Error> =>
  sourceAt(url)
    .token()
    .then(
      () => expect.unreachable('a token'),
      (error: Error) => error,
    )

describe('a core that is not well', () => {
  it.concurrent.for<[string, string, Lie]>([
    ['hangs up', 'core_unreachable', hangsUp],
    ['cuts its answer', 'core_unreachable', breaksOff('hangs up')],
    ['is silent', 'core_timeout', hangs],
    ['falls silent in its answer', 'core_timeout', breaksOff('hangs')],
    ['falls silent in a refusal', 'core_timeout', breaksOff('hangs', 500)],
    ['takes another key', 'api_key_refused', answers(401, 'Invalid API key')],
    ['forbids this address', 'core_rejected', answers(403, 'IP address not allowed')],
    ['has had too many requests', 'core_busy', answers(429, '', { 'retry-after': '60' })],
    ['has an internal error', 'core_failed', answers(500, 'Internal Error')],
    ['is behind a proxy that has lost it', 'core_failed', answers(502, 'x'.repeat(2 * LIMIT))],
    ['makes something', 'core_rejected', answers(201, JSON.stringify({ ...OK, jwt: 'x' }))],
    ['answers nothing', 'response_malformed', answers(200, '')],
    ['answers HTML', 'response_malformed', answers(200, '<html>', { 'content-type': 'text/html' })],
    ['answers a list', 'response_malformed', answers(200, '[{"status":"OK"}]')],
    ['answers no UTF-8', 'response_malformed', answers(200, Buffer.from([0x22, 0xff, 0x22]))],
    ['answers too much', 'response_malformed', padded(LIMIT + 1)],
    ['answers too much, compressed', 'response_malformed', compressed(LIMIT + 1)],
    ['gives no token', 'response_malformed', answers(200, JSON.stringify(OK))],
    ['has another status', 'response_malformed', answers(200, '{"status":"NO","jwt":"x"}')],
    ['lacks RS256', 'algorithm_unsupported', answers(200, LACKS_RS256)],
    ['gives no JWT', 'token_unexpected', answers(200, JSON.stringify({ ...OK, jwt: 'x' }))],
    ['signs otherwise', 'token_unexpected', mints({ alg: 'RS512' })],
    ['grants more', 'token_unexpected', mints({}, { permissions: ['admin'] })],
  ])('that %s: %s', async ([, code, lie], { onTestFinished }) => {
    const core = await startLyingCore(lie, onTestFinished)
    const counted = vi.fn(fetch)
    const limit = code === 'core_timeout' && { timeoutMs: TIMEOUT_MS }
    const options = { clock: manualClock(), fetch: counted, ...limit }
    const source = sourceAt(core.url, options, onTestFinished)
    await expect(source.token()).rejects.toMatchObject(failure(code))
    expect(source.health()).toMatchObject({ state: 'cold', lastError: code })
    // While the back-off lasts nothing more is asked.
    await expect(source.token()).rejects.toMatchObject(failure(code))
    await expect(source.ready()).rejects.toMatchObject(failure(code))
    expect(counted).toHaveBeenCalledTimes(1)
  })

  it('that is down', async () => {
    const error = await errorAt(await refusingOrigin())
    expect(error).toMatchObject(failure('core_unreachable'))
    expect(String(error)).toBe('TokenSourceError: no service token: core_unreachable, ECONNREFUSED')
    expect(Object.keys(error)).toEqual(['name', 'code'])
  })

  const LONG = 'x'.repeat(190)
  it.each([
    ['of a wrong path', 404, 'Not found\n', 'Not found'],
    ['in several lines', 400, 'a\r\n\u001b[31m b\u2028c', 'a [31m b c'],
    ['that repeats the key', 400, `${API_KEY} of api-key:${API_KEY}!`, '… of api-key:…!'],
    ['that repeats a token', 400, 'no eyJhbGciOiJS.eyJzdWIiOiJi.c2ln, sorry', 'no …, sorry'],
    ['cut in a token', 400, `${LONG} eyJhbGciOiJS.eyJzdWIi`, `${LONG} …`],
    ['that is long', 400, 'x'.repeat(201), `${'x'.repeat(200)}…`],
  ])('that refuses the input is quoted: a text %s', async (_, status, text, quoted) => {
    knowSecret('an API key', API_KEY)
    const core = await startLyingCore(answers(status, text))
    const error = await errorAt(core.url)
    expect(error).toMatchObject({ code: 'core_rejected', coreStatus: status })
    expect(error.message).toBe(`no service token: core_rejected, status ${status}: ${quoted}`)
  })

  it.each([
    ['a page', '  <html>no</html>'],
    ['nothing', ''],
    ['blanks', ' \n'],
    ['no UTF-8', Buffer.from([0xff])],
    ['more than is read', 'x'.repeat(LIMIT + 1)],
  ])('that refuses the input with %s is not quoted', async (_, text) => {
    const core = await startLyingCore(answers(400, text))
    await expect(sourceAt(core.url).token()).rejects.toThrow(
      /^no service token: core_rejected, status 400$/,
    )
  })

  it('says its status, under a name that Express does not answer with', async () => {
    const core = await startLyingCore(answers(503, 'no'))
    const error = await errorAt(core.url)
    expect(error).toMatchObject({ code: 'core_failed', coreStatus: 503 })
    expect(error).not.toHaveProperty('status')
  })
})

describe('an answer at the limit', () => {
  it.each<[string, Lie]>([
    ['of 16 KiB', padded(LIMIT)],
    ['a second longer, since the core reads its clock twice', mints({}, { exp: 1_700_000_301 })],
  ])('%s, is taken', async (_, lie) => {
    const source = sourceAt((await startLyingCore(lie)).url)
    expect(await tokenOf(source)).toMatch(/^ey/)
  })
})

it('a fetch that ignores its signal is not waited for', async () => {
  const never: typeof fetch = () => new Promise(() => {})
  const source = sourceAt('http://127.0.0.1:2', { fetch: never, timeoutMs: TIMEOUT_MS })
  await expect(source.token()).rejects.toMatchObject(failure('core_timeout'))
})

it('the core is asked exactly as it says', async () => {
  const core = await startLyingCore(mints())
  await tokenOf(sourceAt(`${core.url}/below/`, { validitySeconds: 3600 }))
  const [asked] = core.requests
  expect(asked?.url).toBe('/below/recipe/jwt')
  expect(asked?.headers).toMatchObject({
    rid: 'jwt',
    'content-type': 'application/json; charset=utf-8',
    'api-key': expect.any(String),
  })
  expect(asked?.headers).not.toHaveProperty('authorization')
  expect(asked?.body).toEqual({
    payload: {
      aud: 'orders',
      sub: 'billing',
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['orders:read', 'orders:write'],
      jti: expect.stringMatching(/^[\w-]{22}$/),
    },
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: 'https://api.example.com',
    validity: 3600,
  })
})

function compressed(bytes: number): Lie {
  const text = JSON.stringify({ ...OK, jwt: 'x' }).padEnd(bytes)
  return answers(200, gzipSync(text), { 'content-encoding': 'gzip' })
}
