import type { RemoteKeySetOptions } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import {
  type Behaviour,
  bomb,
  drip,
  dripHeaders,
  flood,
  hang,
  hangUp,
  headersThenHang,
  MEBIBYTE,
  padded,
  redirectTo,
  respond,
  serve,
} from '../../support/issuer/key-set-server.js'
import { makeSigningKey, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { until } from '../../support/until.js'
import { openReceiverOfKeySet } from './open-key-set.js'

const key = makeSigningKey('d-1')
const good = { keys: [key.jwk] }
/** The token's own key, so that whoever took it from a bad answer would accept the token. */
const manyKeys = Array.from({ length: 999 }, (_, index) => ({ ...key.jwk, kid: `k${index}` }))

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n'
const NO_UTF8 = Buffer.from(JSON.stringify({ ...good, x: '\xff' }), 'latin1')

const MISBEHAVIOUR: readonly [string, string, Behaviour][] = [
  ['resets connections', 'network', hangUp],
  ['talks no HTTP', 'network', (socket) => void socket.write('220 smtp.example ESMTP\r\n\r\n')],
  ['cuts off its answer', 'network', (socket) => void socket.end(`${HEAD}${JSON.stringify(good)}`)],
  ['garbles its gzip', 'network', respond('200 OK', 'no gzip', { 'content-encoding': 'gzip' })],
  ['hangs before the headers', 'timeout', hang],
  ['sends headers, then hangs', 'timeout', headersThenHang],
  ['sends one byte a second', 'timeout', drip(good, 1000)],
  ['drips its body without a pause', 'timeout', drip({ ...good, pad: 'x'.repeat(9999) }, 10)],
  ['drips its headers', 'timeout', dripHeaders(good, 10)],
  ['sends 10 MiB', 'too_large', flood(good, 10 * MEBIBYTE).behaviour],
  ['sends a gzip bomb', 'too_large', bomb(good, 'gzip', 64)],
  ['sends a byte more than 64 KiB', 'too_large', respond('200 OK', padded(good, 64 * 1024 + 1))],
  ['sends no UTF-8', 'malformed', respond('200 OK', NO_UTF8)],
  ['answers 201', 'status', respond('201 Created', JSON.stringify(good))],
  ['answers 500', 'status', respond('500 Internal Server Error', JSON.stringify(good))],
  ['answers 304 unasked', 'status', respond('304 Not Modified', '')],
  ['redirects with 302', 'status', redirectTo('/elsewhere')],
  ['answers 200 with HTML', 'malformed', respond('200 OK', '<!doctype html><p>Sign in')],
  ['answers {}', 'malformed', serve({})],
  ['answers {"keys":[]}', 'no_usable_key', serve({ keys: [] })],
  ['has a thousand keys', 'too_large', serve({ keys: [key.jwk, ...manyKeys] })],
  ['has 33 keys', 'too_many_keys', serve({ keys: [key.jwk, ...manyKeys.slice(0, 32)] })],
]

const stage = (behaviour: Behaviour, options: Partial<RemoteKeySetOptions> = {}) =>
  openReceiverOfKeySet([behaviour], { timeoutMs: 5000, ...options })

const timeoutOf = (code: string): number => (code === 'timeout' ? 600 : 5000)

const OUT_OF_REACH = { status: 503, retryAfter: '5', challenge: undefined }

describe.each(MISBEHAVIOUR)('a key-set server that %s', (_name, code, behaviour) => {
  it('is the 503, in time, when there is no set; and once it is well again all is', async () => {
    const { receiver, server, clock, auth } = await stage(behaviour, { timeoutMs: timeoutOf(code) })
    const token = tokenFrom(key, { now: clock() })
    const answer = await receiver.call(token)
    expect(answer).toMatchObject(OUT_OF_REACH)
    expect(server.requests.length).toBe(2)
    if (code === 'timeout') await until('they are gone', async () => server.connections() === 0)
    expect(auth.health().keySet).toEqual({ state: 'cold', keys: [], lastError: code })
    server.behave(serve(good))
    expect(await receiver.call(token)).toMatchObject(OUT_OF_REACH)
    clock.advance(1)
    expect(await receiver.call(token)).toMatchObject({ status: 200 })
  })
})

/** What is kept depends on the code alone. */
const ONE_OF_EACH_CODE = MISBEHAVIOUR.filter(
  ([, code], index) => MISBEHAVIOUR.findIndex(([, other]) => other === code) === index,
)

it.each(ONE_OF_EACH_CODE)(
  'a key-set server that %s takes nothing from a good set: %s',
  async (...row) => {
    const [, code, behaviour] = row
    const { receiver, server, clock, auth } = await stage(serve(good), {
      timeoutMs: timeoutOf(code),
    })
    const token = tokenFrom(key, { now: clock() })
    expect(await receiver.call(token)).toMatchObject({ status: 200 })
    server.behave(behaviour)
    const unknown = receiver.call(withKid(token, 'random'))
    await server.requested(2)
    expect(await receiver.call(token)).toMatchObject({ status: 200 })
    const fresh = tokenFrom(key, { now: clock(), claims: { jti: 'another' } })
    expect(await receiver.call(fresh)).toMatchObject({ status: 200 })
    expect(await unknown).toMatchObject(OUT_OF_REACH)
    expect(auth.health().keySet).toMatchObject({ state: 'fresh', keys: ['d-1'], lastError: code })
    clock.advance(3599)
    const late = tokenFrom(key, { now: clock() })
    expect(await receiver.call(late)).toMatchObject({ status: 200 })
  },
)
