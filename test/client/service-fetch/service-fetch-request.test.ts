import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { reportOf } from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import { serve } from '../../support/receiver/serve.js'
import {
  answer,
  caller,
  countingSource,
  ok,
  startService,
  unavailable,
} from '../scripted-service.js'

const KEY = { 'idempotency-key': 'order-1' }

function form(): FormData {
  const data = new FormData()
  data.set('item', 'book')
  data.set('file', new Blob(['\u0000\u0001\u0002']), 'bytes.bin')
  return data
}

const stream = (...parts: Uint8Array[]): ReadableStream => ReadableStream.from(parts)

interface Sent {
  readonly body: () => NonNullable<RequestInit['body']>
  readonly bytes?: string
  readonly mediaType: RegExp | undefined
}

const BODIES: Record<string, Sent> = {
  'a string': {
    body: () => 'caf\u00e9',
    bytes: 'caf\u00e9',
    mediaType: /^text\/plain;charset=UTF-8$/,
  },
  'no character': { body: () => '', bytes: '', mediaType: /^text\/plain;charset=UTF-8$/ },
  bytes: { body: () => Buffer.from('bytes'), bytes: 'bytes', mediaType: undefined },
  'an ArrayBuffer': {
    body: () => new Uint8Array([111, 107]).buffer,
    bytes: 'ok',
    mediaType: undefined,
  },
  'a Blob': { body: () => new Blob(['b'], { type: 'a/b' }), bytes: 'b', mediaType: /^a\/b$/ },
  'a query': {
    body: () => new URLSearchParams({ a: '1 2' }),
    ...{ bytes: 'a=1+2', mediaType: /^application\/x-www-form-urlencoded;charset=UTF-8$/ },
  },
  'a form': { body: form, mediaType: /^multipart\/form-data; boundary=\S{10,}$/ },
  'a stream': {
    body: () => stream(Buffer.from('one '), Buffer.from('two')),
    ...{ bytes: 'one two', mediaType: undefined },
  },
}

describe.concurrent.each(Object.entries(BODIES))('%s as a body', (_name, { body, ...expected }) => {
  it.each(['in init', 'in a Request'])('is the same in every attempt (%s)', async (where) => {
    const service = await startService(unavailable(), unavailable(), ok)
    const init = { method: 'PUT', headers: KEY, body: body(), duplex: 'half' } as RequestInit
    const call = caller(service)
    const sent = `${service.url}/orders/1?a=b`
    const response = await (where === 'in init' ? call(sent, init) : call(new Request(sent, init)))
    expect(response.status).toBe(200)
    const { requests } = service
    expect(requests).toHaveLength(3)
    for (const request of requests) {
      expect(request).toMatchObject({ method: 'PUT', path: '/orders/1?a=b' })
      expect(request.headers['idempotency-key']).toBe('order-1')
      expect(request.body).toEqual(requests[0]?.body)
      expect(request.headers['content-type']).toBe(requests[0]?.headers['content-type'])
    }
    const [first] = requests
    if (expected.bytes !== undefined) expect(first?.body.toString()).toBe(expected.bytes)
    if (expected.mediaType) expect(first?.headers['content-type']).toMatch(expected.mediaType)
    else expect(first?.headers).not.toHaveProperty('content-type')
  })
})

describe.concurrent('what is called', () => {
  it('may be a string, a URL or a Request, with init over it', async () => {
    const service = await startService()
    const call = caller(service)
    const address = `${service.url}/orders?x=1`
    const request = new Request(address, { method: 'PUT', headers: { 'x-a': '1' }, body: 'one' })
    await call(address, { method: 'put' })
    await call(new URL(address))
    await call(request.clone())
    await call(request, { method: 'POST', headers: { 'x-a': '2' }, body: 'two' })
    await call(address, new Request(address, { method: 'DELETE', redirect: 'manual' }))
    expect(
      service.requests.map(({ method, headers, body }) => [method, headers['x-a'], String(body)]),
    ).toEqual([
      ['PUT', undefined, ''],
      ['GET', undefined, ''],
      ['PUT', '1', 'one'],
      ['POST', '2', 'two'],
      ['DELETE', undefined, ''],
    ])
  })

  it('is what it was when the call was made', async () => {
    const service = await startService(unavailable(), ok)
    const elsewhere = await startService()
    const url = new URL(service.url)
    const headers = { 'x-a': '1' }
    const body = Buffer.from('one')
    const init = { method: 'PUT', headers: { ...headers, ...KEY }, body }
    const called = caller(service)(url, init)
    url.href = elsewhere.url
    init.headers['x-a'] = '2'
    init.method = 'DELETE'
    body.write('two')
    await called
    expect(elsewhere.requests).toHaveLength(0)
    for (const { method, headers: sent, body: bytes } of service.requests) {
      expect([method, sent['x-a'], String(bytes)]).toEqual(['PUT', '1', 'one'])
    }
    expect(service.requests).toHaveLength(2)
  })

  it('is sent with the other members of init', async () => {
    const given: RequestInit[] = []
    const fetch: typeof globalThis.fetch = async (_input, init) => {
      given.push(init ?? {})
      return new Response('ok')
    }
    const call = serviceFetch(countingSource(), { origins: ['https://a.example'], fetch })
    const dispatcher = { dispatch() {} }
    const init = { dispatcher, keepalive: true, integrity: '', cache: 'no-store' }
    await call('https://a.example/x', init as unknown as RequestInit)
    expect(given[0]).toMatchObject({ keepalive: true, cache: 'no-store', redirect: 'manual' })
    expect(given[0]).toHaveProperty('dispatcher', dispatcher)
  })
})

describe.concurrent('the idempotency key', () => {
  const keysOf = (service: { requests: readonly { headers: Record<string, unknown> }[] }) =>
    service.requests.map(({ headers }) => headers['idempotency-key'])

  it("is made for a write with 'auto', one for each call, and told in the report", async () => {
    const service = await startService(unavailable(), ok)
    const call = caller(service, { idempotencyKey: 'auto' })
    const first = reportOf(await call(service.url, { method: 'POST', body: 'x' }))
    const second = reportOf(await call(service.url, { method: 'DELETE' }))
    const keys = keysOf(service)
    expect(keys).toEqual([first.idempotencyKey, first.idempotencyKey, second.idempotencyKey])
    expect(new Set(keys).size).toBe(2)
    for (const key of keys) expect(key).toMatch(/^[\x21-\x7e]{32,255}$/)
  })

  it.each(['GET', 'HEAD', 'OPTIONS'])('is not made for %s, which needs none', async (method) => {
    const service = await startService(unavailable(), ok)
    const call = caller(service, { idempotencyKey: 'auto' })
    const response = await call(service.url, { method })
    expect([response.status, reportOf(response).idempotencyKey]).toEqual([200, undefined])
    expect(keysOf(service)).toEqual([undefined, undefined])
  })

  it.each(['invoice-17', '"invoice 17"'.replace(' ', '-'), 'a,b', 'k'.repeat(255)])(
    'is the own one of the caller, where there is one (%s)',
    async (key) => {
      const service = await startService(unavailable(), ok)
      const call = caller(service, { idempotencyKey: 'auto' })
      const headers = new Headers({ 'Idempotency-Key': key })
      expect(reportOf(await call(service.url, { method: 'POST', headers })).idempotencyKey).toBe(
        key,
      )
      expect(keysOf(service)).toEqual([key, key])
    },
  )
})

describe.concurrent('redirects', () => {
  it.each([301, 302, 303, 307, 308])('come back as they are (%s)', async (status) => {
    const elsewhere = await serve((_request, response) => response.end('stolen'))
    try {
      const told: string[] = []
      elsewhere.server.on('request', ({ headers }) => told.push(JSON.stringify(headers)))
      const service = await startService(answer(status, { location: elsewhere.url }))
      for (const method of ['GET', 'POST']) {
        const response = await caller(service)(service.url, { method, headers: KEY })
        expect(response.status).toBe(status)
        expect(response.headers.get('location')).toBe(elsewhere.url)
      }
      const request = new Request(service.url, { redirect: 'follow' })
      expect((await caller(service)(request)).status).toBe(status)
      const refused = caller(service)(service.url, { redirect: 'error' })
      await expect(refused).rejects.toMatchObject({ code: 'network', cause: expect.any(TypeError) })
      expect(told).toEqual([])
      expect(service.requests).toHaveLength(4)
    } finally {
      await elsewhere.close()
    }
  })
})

describe.concurrent('is a TypeError before anything is sent', () => {
  const CASES: Record<string, [input: (url: string) => string | URL, init: RequestInit, RegExp]> = {
    'another origin': [
      () => 'http://127.0.0.1:1/',
      {},
      /http:\/\/127\.0\.0\.1:1 is not in the option/,
    ],
    'another host name of it': [
      (url) => url.replace('127.0.0.1', 'localhost'),
      {},
      /not in the option/,
    ],
    'another scheme': [() => 'data:text/plain,x', {}, /not in the option `origins`/],
    'a blob of the origin': [(url) => `blob:${url}`, {}, /not in the option `origins`/],
    'a relative address': [() => '/orders', {}, /absolute URL/],
    'a password': [(url) => url.replace('//', '//me:hush@'), {}, /user name or password/],
    'an authorization header': [
      String,
      { headers: { Authorization: 'Bearer mine' } },
      /authorization/,
    ],
    "redirect: 'follow'": [String, { redirect: 'follow' }, /redirect/],
    'an unknown redirect': [String, { redirect: 'x' as 'error' }, /redirect/],
    'an idempotency key that is none': [
      String,
      { headers: { 'idempotency-key': 'two words' } },
      /idempotency-key/,
    ],
    'an empty idempotency key': [String, { headers: { 'idempotency-key': '' } }, /idempotency-key/],
    'a header that is none': [String, { headers: { 'x-secret': 'hush\u0000' } }, /headers/],
    'a signal that is none': [String, { signal: {} as AbortSignal }, /signal/],
    TRACE: [String, { method: 'TRACE' }, /TRACE/],
    CONNECT: [String, { method: 'CONNECT' }, /CONNECT/],
    'a GET with a body': [String, { method: 'GET', body: 'x' }, /body/],
    'init that is none': [String, 7 as unknown as RequestInit, /init/],
    'a body above its limit': [String, { method: 'PUT', body: 'x'.repeat(1025) }, /maxBodyBytes/],
    'a stream above its limit': [
      String,
      { method: 'PUT', body: stream(Buffer.alloc(1000), Buffer.alloc(1000)) },
      /maxBodyBytes/,
    ],
    'a stream of texts': [
      String,
      { method: 'PUT', body: ReadableStream.from(['x']) as ReadableStream },
      /body/,
    ],
  }

  it.each(Object.entries(CASES))('%s', async (_name, [input, init, named]) => {
    const service = await startService()
    const source = countingSource()
    const call = serviceFetch(source, { origins: [service.url], maxBodyBytes: 1024 })
    const error: unknown = await call(input(service.url), init).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect((error as TypeError).message).toMatch(named)
    expect((error as TypeError).message).not.toMatch(/hush|mine|two words/)
    expect(source.asked).toEqual([])
    expect(service.requests).toHaveLength(0)
  })

  it('a stream that fails, with its error as the cause', async () => {
    const service = await startService()
    const cause = new Error('the disk is gone')
    const body = Readable.toWeb(
      Readable.from(
        (async function* () {
          yield Buffer.from('half of ')
          throw cause
        })(),
      ),
    ) as ReadableStream
    const called = caller(service)(service.url, { method: 'PUT', body, headers: KEY })
    await expect(called).rejects.toMatchObject({ name: 'TypeError', cause })
    expect(service.requests).toHaveLength(0)
  })

  it('a stream that is too large is told to stop', async () => {
    let reason: unknown = 'nothing'
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(512)),
      cancel: (given) => {
        reason = given
      },
    })
    const service = await startService()
    const call = caller(service, { maxBodyBytes: 1024 })
    await expect(call(service.url, { method: 'PUT', body })).rejects.toThrow(TypeError)
    expect(reason).toBeUndefined()
  })

  it('but a body of just its limit is sent', async () => {
    const service = await startService()
    const call = caller(service, { maxBodyBytes: 1024 })
    expect((await call(service.url, { method: 'PUT', body: 'x'.repeat(1024) })).status).toBe(200)
  })
})
