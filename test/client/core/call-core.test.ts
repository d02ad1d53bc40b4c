import { json, text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type CoreRequest, callCore } from '../../../src/client/core/call-core.js'
import { refusingOrigin } from '../../support/network/free-port.js'
import { serve } from '../../support/receiver/serve.js'
import { knowSecret } from '../../support/secret-search/index.js'

const KEY = 'the-key-of-this-test'

const listing: CoreRequest = {
  method: 'GET',
  path: '/bulk-import/users?status=FAILED',
  headers: {},
  timeoutMs: 20_000,
  maxAnswerBytes: 1000,
  signal: new AbortController().signal,
}

async function coreThat(...[listener]: Parameters<typeof serve>) {
  const { url, close } = await serve(listener)
  onTestFinished(close)
  return { baseUrl: url, apiKey: KEY, fetch: globalThis.fetch }
}

it('asks for any operation, with a body or without', async () => {
  const core = await coreThat(async (request, response) => {
    const { method, url, headers } = request
    const sent = method === 'GET' ? await text(request) : await json(request)
    response.end(JSON.stringify([method, url, headers['content-type'], headers['rid'], sent]))
  })
  const { status, text: answer } = await callCore(core, listing)
  const seen = JSON.parse(answer ?? '')
  expect([status, ...seen]).toEqual([200, 'GET', listing.path, null, null, ''])
  const posted = await callCore(core, {
    ...listing,
    method: 'POST',
    path: '/bulk-import/users/remove',
    headers: { rid: 'bulk' },
    body: { ids: ['a'] },
  })
  const path = '/bulk-import/users/remove'
  const expected = ['POST', path, 'application/json; charset=utf-8', 'bulk', { ids: ['a'] }]
  expect(JSON.parse(posted.text ?? '')).toEqual(expected)
})

it('gives every status with its text, so that each operation judges it', async () => {
  const core = await coreThat((_, response) => {
    response.writeHead(400, { 'content-type': 'text/plain' }).end('{"errors":["é"]}')
  })
  expect(await callCore(core, listing)).toMatchObject({ status: 400, text: '{"errors":["é"]}' })
})

it.each([
  ['too large', 'too_large', 'x'.repeat(1001)],
  ['not UTF-8', 'not_utf8', Buffer.from([0xff])],
])('gives the status without the text of an answer that is %s', async (_, fault, body) => {
  const core = await coreThat((__, response) => {
    response.writeHead(500).end(body)
  })
  expect(await callCore(core, listing)).toEqual({ status: 500, text: undefined, fault })
})

it('tells by Node’s code that no connection was made', async () => {
  const core = { baseUrl: await refusingOrigin(), apiKey: KEY, fetch: globalThis.fetch }
  await expect(callCore(core, listing)).rejects.toMatchObject({
    name: 'CoreFailure',
    code: 'unreachable',
    systemCode: 'ECONNREFUSED',
    mayHaveArrived: false,
  })
})

const coded = (code: string, more: object = {}) => Object.assign(new Error(code), { code, ...more })
const connectError = (code: string) => coded(code, { syscall: 'connect' })

it.each<[string, unknown, boolean]>([
  ['the name is not known', coded('ENOTFOUND', { syscall: 'getaddrinfo' }), false],
  ['connecting took too long', coded('UND_ERR_CONNECT_TIMEOUT'), false],
  [
    'all numbers of a name refused',
    Object.assign(
      new AggregateError([connectError('ECONNREFUSED'), connectError('EHOSTUNREACH')]),
      {
        code: 'ECONNREFUSED',
      },
    ),
    false,
  ],
  [
    'a list of errors is empty',
    Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
    true,
  ],
  ['a connection timed out', coded('ETIMEDOUT', { syscall: 'read' }), true],
  ['a connection was closed', coded('UND_ERR_SOCKET'), true],
  ['nothing is known', new TypeError('fetch failed'), true],
])('tells whether the core may have got it: %s', async (_, cause, mayHaveArrived) => {
  const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }))
  const core = { baseUrl: 'https://core.example', apiKey: KEY, fetch }
  const asked = callCore(core, listing)
  await expect(asked).rejects.toMatchObject({ code: 'unreachable', mayHaveArrived })
})

it('throws what a body cannot be JSON for, and sends nothing', async () => {
  const fetch = () => Promise.reject(new Error('sent'))
  const core = { baseUrl: 'https://core.example', apiKey: KEY, fetch }
  const asked = callCore(core, { ...listing, method: 'POST', body: { count: 1n } })
  await expect(asked).rejects.toThrow(TypeError)
})

it('passes no code on that does not look like Node’s, and no chain without end', async () => {
  knowSecret('an API key', KEY)
  const odd = Object.assign(new Error('odd'), { code: KEY })
  odd.cause = odd
  const fetch = () => Promise.reject(odd)
  const error: unknown = await callCore(
    { baseUrl: 'https://core.example', apiKey: KEY, fetch },
    listing,
  ).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'unreachable' })
  expect(error).not.toHaveProperty('systemCode')
})

it('rejects with the reason of the signal that ends it', async () => {
  const ending = new AbortController()
  const core = await coreThat(() => ending.abort(new Error('closed by the caller')))
  const asked = callCore(core, { ...listing, signal: ending.signal })
  await expect(asked).rejects.toThrow('closed by the caller')
})

describe('a 429', () => {
  it.each(['GET', 'POST'] as const)('is waited out, of a %s too', async (method) => {
    const askedAt: number[] = []
    const core = await coreThat((_, response) => {
      askedAt.push(performance.now())
      if (askedAt.length === 1) response.writeHead(429, { 'retry-after': '1' }).end()
      else if (askedAt.length < 5) response.writeHead(429).end('slow down')
      else response.end('done')
    })
    expect(await callCore(core, { ...listing, method })).toEqual({ status: 200, text: 'done' })
    const waitsMs = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0))
    const minMs = [1050, 100, 200, 400]
    expect(waitsMs).toHaveLength(minMs.length)
    // Node's timers may fire a millisecond early.
    for (const [index, ms] of waitsMs.entries()) {
      expect(ms).toBeGreaterThan((minMs[index] ?? 0) - 5)
    }
  })

  it('is the answer when there is no time for another request', async () => {
    let requests = 0
    const core = await coreThat((_, response) => {
      requests += 1
      response.writeHead(429, { 'retry-after': '30' }).end('slow down')
    })
    expect(await callCore(core, listing)).toMatchObject({ status: 429 })
    expect(requests).toBe(1)
  })

  it('ends the wait with the signal', async () => {
    const core = await coreThat((_, response) =>
      response.writeHead(429, { 'retry-after': '5' }).end(),
    )
    const ending = new AbortController()
    const reason = new Error('no more')
    setTimeout(() => ending.abort(reason), 200)
    const startedAt = performance.now()
    await expect(callCore(core, { ...listing, signal: ending.signal })).rejects.toBe(reason)
    expect(performance.now() - startedAt).toBeLessThan(4000)
  })

  it('before a 401 leaves a key function its second call', async () => {
    const statuses = [429, 401, 200]
    const keys: string[] = []
    const core = await coreThat((request, response) => {
      keys.push(String(request.headers['api-key']))
      response.writeHead(statuses[keys.length - 1] ?? 200).end()
    })
    let calls = 0
    const apiKey = () => `key-number-${++calls}`
    expect(await callCore({ ...core, apiKey }, listing)).toMatchObject({ status: 200 })
    expect(keys).toEqual(['key-number-1', 'key-number-2', 'key-number-3'])
  })
})
