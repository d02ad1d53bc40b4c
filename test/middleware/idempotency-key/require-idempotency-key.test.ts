import { memoryStore, type ReservationRequest } from 'express-service-auth'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type Bench, describeReceivers } from '../../support/receiver/each-receiver.js'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { type Call, call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'

const REFUSAL_503 = '{"type":"about:blank","title":"Service Unavailable","status":503}'

/** A receiver whose answers differ from run to run. */
const start = (
  bench: Bench,
  { handler, options, ...more }: Partial<OrdersOptions> = {},
): Promise<Receiver> =>
  bench.start(
    handler ??
      ((req, res) => void res.status(201).json({ key: req.idempotency?.key, run: newKey() })),
    options,
    more,
  )

/** Whether the second request got the result of the first. */
async function isReplayed({ port }: Receiver, first: Call, second: Call): Promise<boolean> {
  expect((await call(port, first)).status).toBe(201)
  const answer = await call(port, second)
  expect(answer.status).toBe(201)
  return answer.headers['idempotent-replayed'] !== undefined
}

describeReceivers('requireIdempotencyKey', (bench) => {
  it.each<[string, Call, Call]>([
    ['body', { body: '{"a":1}' }, { body: '{"a":2}' }],
    ['-0', { body: '{"a":0}' }, { body: '{"a":-0}' }],
    ['1e400 and null', { body: '{"a":1e400}' }, { body: '{"a":null}' }],
    ['own __proto__', { body: '{"__proto__":{"a":1}}' }, { body: '{}' }],
    ['lone surrogates', { body: '{"a":"\\ud800"}' }, { body: '{"a":"\\ud801"}' }],
    ['query', {}, { path: '/orders/1?a=1' }],
    ['path', {}, { path: '/orders/2' }],
    ['path by escapes', { path: '/orders/a' }, { path: '/orders/%61' }],
    [
      'media type',
      { body: '{"a":1}', contentType: 'application/json' },
      { body: '{"a":1}', contentType: 'application/x.json' },
    ],
  ])('refuses the same key for another request: %s', async (_name, first, second) => {
    const receiver = await start(bench, {
      parsers: [bench.express.json({ type: ['application/json', 'application/x.json'] })],
    })
    const key = newKey()
    expect((await call(receiver.port, { ...first, key })).status).toBe(201)
    expect(await call(receiver.port, { ...second, key })).toMatchObject({
      status: 422,
      problem: 'idempotency-key-reused',
      headers: { 'cache-control': ['no-store'] },
    })
    expect((await call(receiver.port, { ...first, key })).headers['idempotent-replayed']).toEqual([
      'true',
    ])
    expect(receiver.handled).toBe(1)
  })

  it.each<[string, Call, Call]>([
    ['no body and {}', {}, { body: '{}' }],
    ['no body and an empty one', {}, { headers: { 'content-length': '0' } }],
    ['absolute form', { path: '/orders/1?a=b' }, { path: 'http://else.where:1/orders/1?a=b' }],
    [
      'parameters of the media type',
      { body: '{}', contentType: 'application/json' },
      { body: '{}', contentType: 'Application/JSON; charset=utf-8' },
    ],
    ['other headers', {}, { headers: { 'x-other': '1' } }],
  ])('compares what it should: %s', async (name, first, second) => {
    const receiver = await start(bench)
    const key = newKey()
    const before = await call(receiver.port, { ...first, key })
    const after = await call(receiver.port, { ...second, key })
    if (name === 'no body and {}') expect(after.problem).toBe('idempotency-key-reused')
    else expect(after.body.equals(before.body)).toBe(true)
    expect(receiver.handled).toBe(1)
  })

  it('refuses another request also while the first one runs', async () => {
    let go = (): void => {}
    const gate = new Promise<void>((resolve) => (go = resolve))
    const receiver = await start(bench, {
      handler: (_req, res) => void gate.then(() => res.json({})),
    })
    const key = newKey()
    const first = call(receiver.port, { key, body: '{"a":1}' })
    await bench.store.asked('reserve')
    while (bench.store.fences.length === 0) await new Promise(setImmediate)
    expect((await call(receiver.port, { key, body: '{"a":2}' })).problem).toBe(
      'idempotency-key-reused',
    )
    go()
    expect((await first).status).toBe(200)
  })

  it('scopes a key to caller, operation, issuer and audience', async () => {
    const key = newKey()
    const receiver = await start(bench)
    expect(await isReplayed(receiver, { key }, { key, claims: { sub: 'reporting' } })).toBe(false)
    expect(await isReplayed(receiver, { key }, { key, method: 'PUT' })).toBe(false)
    expect(await isReplayed(receiver, { key }, { key })).toBe(true)
    expect(receiver.handled).toBe(3)
    for (const { policy, claims } of [
      { policy: { issuer: 'https://other.example' }, claims: { iss: 'https://other.example' } },
      { policy: { audience: 'payments' }, claims: { aud: 'payments' } },
    ]) {
      const other = await start(bench, { policy })
      const answer = await call(other.port, { key, claims })
      expect(answer.status).toBe(201)
      expect(answer.headers['idempotent-replayed']).toBeUndefined()
    }
    // One operation for both methods; the fingerprint tells them apart.
    const named = await start(bench, { options: { operation: newKey() } })
    await call(named.port, { key })
    expect((await call(named.port, { key, method: 'PUT' })).problem).toBe('idempotency-key-reused')
  })

  it('digests a fingerprint of one’s own, whatever is in it', async () => {
    let text = ''
    const receiver = await start(bench, { options: { fingerprint: () => text } })
    for (text of ['', 'a|b', 'secret value', '\ud800', 'x'.repeat(10_000)]) {
      const key = newKey()
      expect(await isReplayed(receiver, { key }, { key })).toBe(true)
      text += '!'
      expect((await call(receiver.port, { key })).problem).toBe('idempotency-key-reused')
    }
  })

  it('leaves to a fingerprint of one’s own alone what another request is', async () => {
    const options = { operation: newKey(), fingerprint: () => 'the same' }
    const receiver = await start(bench, { options })
    const key = newKey()
    expect(await isReplayed(receiver, { key }, { key, path: '/orders/2?a=1' })).toBe(true)
    const another = { key, method: 'PUT', body: '{"a":2}' }
    expect((await call(receiver.port, another)).headers['idempotent-replayed']).toEqual(['true'])
    expect(receiver.handled).toBe(1)
  })

  it('reaches the store in digests alone, with another owner every time', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const reserve = vi.fn(store.reserve)
    const secret = 'secret | of one’s own'
    const options = { operation: () => secret, fingerprint: () => secret }
    const receiver = await start(bench, { store: { ...store, reserve }, options })
    const key = newKey()
    for (let time = 0; time < 2; time += 1) {
      await call(receiver.port, { key, body: '{"a":"secret"}' })
    }
    const [[first], [second]] = reserve.mock.calls as [[ReservationRequest], [ReservationRequest]]
    const digest = expect.stringMatching(/^[\w-]{24}$/)
    expect(first).toMatchObject({ recordId: digest, fingerprint: digest, rerunAbandoned: false })
    expect(JSON.stringify(first)).not.toContain('secret')
    expect(JSON.stringify(first)).not.toContain(key)
    expect(second).toEqual({ ...first, owner: second.owner })
    expect(second.owner).not.toBe(first.owner)
  })

  it('answers with the refusal of the contract when the store is unreachable', async () => {
    const receiver = await start(bench)
    bench.store.fail('reserve')
    const key = newKey()
    const answer = await call(receiver.port, { key })
    expect(answer.body.toString()).toBe(REFUSAL_503)
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': ['5'] } })
    const { connection, ...headers } = answer.headers
    expect(connection).toBeDefined()
    expect(headers).toEqual({
      'content-type': ['application/problem+json'],
      'content-length': [String(REFUSAL_503.length)],
      'cache-control': ['no-store'],
      'retry-after': ['5'],
    })
    expect(receiver.handled).toBe(0)
    bench.store.fail('reserve', false)
    expect((await call(receiver.port, { key })).status).toBe(201)
  })

  it('keeps the headers it is told to, in any case, and never a cookie', async () => {
    const receiver = await start(bench, {
      options: { storedHeaders: ['X-Kept', 'Content-Length', 'Cache-Control'] },
      handler: (_req, res) => {
        res.set({ 'x-kept': '1', 'X-Other': '2', ETag: '"e"', 'Cache-Control': 'max-age=9' })
        res.cookie('a', 'b').json({ long: 'enough' })
      },
    })
    const key = newKey()
    const first = await call(receiver.port, { key })
    const { headers, body } = await call(receiver.port, { key })
    const { connection, ...rest } = headers
    expect(connection).toBeDefined()
    expect(body.equals(first.body)).toBe(true)
    expect(rest).toEqual({
      'x-kept': ['1'],
      'content-type': first.headers['content-type'],
      'content-length': [String(body.length)],
      'cache-control': ['no-store'],
      'idempotent-replayed': ['true'],
    })
  })
})

describeReceivers('The header Idempotency-Key', (bench) => {
  it('refuses a request without a key, and the store is not asked', async () => {
    const receiver = await start(bench)
    bench.store.fail('reserve')
    const answer = await call(receiver.port)
    expect(answer).toMatchObject({
      status: 400,
      problem: 'idempotency-key-missing',
      headers: { 'content-type': ['application/problem+json'], 'cache-control': ['no-store'] },
    })
    expect(JSON.parse(answer.body.toString())).toMatchObject({ status: 400 })
    expect(receiver.handled).toBe(0)
  })

  it('refuses a malformed key, and one that is sent twice', async () => {
    const receiver = await start(bench)
    for (const headers of [{ 'idempotency-key': '' }, { 'idempotency-key': ['a', 'a'] }]) {
      expect(await call(receiver.port, { headers })).toMatchObject({
        status: 400,
        problem: 'idempotency-key-invalid',
        headers: { 'cache-control': ['no-store'] },
      })
    }
    expect(receiver.handled).toBe(0)
  })

  it('takes a key bare or as a string for the same', async () => {
    const receiver = await start(bench, { options: { operation: newKey() } })
    expect(await isReplayed(receiver, { key: 'a"b\\c' }, { key: '"a\\"b\\\\c"' })).toBe(true)
    const answer = await call(receiver.port, { key: 'a"b\\c' })
    expect(JSON.parse(answer.body.toString()).key).toBe('a"b\\c')
    expect(receiver.handled).toBe(1)
  })

  it('tells keys apart by case', async () => {
    const receiver = await start(bench, { options: { operation: newKey() } })
    expect(await isReplayed(receiver, { key: 'K' }, { key: 'k' })).toBe(false)
  })
})
