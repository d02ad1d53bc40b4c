import { describe, expect, it } from 'vitest'
import { reportOf } from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
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

const BODIES = {
  'a string': { body: () => 'caf\u00e9', bytes: /^caf\u00e9$/, mediaType: /^text\/plain;/ },
  'no character': { body: () => '', bytes: /^$/, mediaType: /^text\/plain;/ },
  'a form': {
    body: form,
    bytes: /bytes\.bin/,
    mediaType: /^multipart\/form-data; boundary=\S{10,}$/,
  },
  'a stream': {
    body: () => stream(Buffer.from('one '), Buffer.from('two')),
    ...{ bytes: /^one two$/, mediaType: undefined },
  },
}

describe.concurrent.each(Object.entries(BODIES))('%s as a body', (_name, sent) => {
  it.each(['in init', 'in a Request'])('is the same in every attempt (%s)', async (where) => {
    const service = await startService(unavailable(), unavailable(), ok)
    const init = { method: 'PUT', headers: KEY, body: sent.body(), duplex: 'half' } as RequestInit
    const call = caller(service)
    const url = `${service.url}/orders/1?a=b`
    const response = await (where === 'in init' ? call(url, init) : call(new Request(url, init)))
    expect(response.status).toBe(200)
    const { requests } = service
    expect(requests).toHaveLength(3)
    const [first] = requests
    expect(first).toMatchObject({ method: 'PUT', path: '/orders/1?a=b', headers: KEY })
    expect(String(first?.body)).toMatch(sent.bytes)
    const mediaType = first?.headers['content-type']
    if (sent.mediaType === undefined) expect(mediaType).toBeUndefined()
    else expect(mediaType).toMatch(sent.mediaType)
    for (const { method, path, headers, body } of requests) {
      expect([method, path, body]).toEqual(['PUT', first?.path, first?.body])
      expect(headers).toMatchObject(KEY)
      expect(headers['content-type']).toBe(mediaType)
    }
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

  it.each(['"invoice-17"', 'a,b', 'k'.repeat(255)])(
    'is the own one of the caller, where there is one (%s)',
    async (key) => {
      const service = await startService(unavailable(), ok)
      const call = caller(service, { idempotencyKey: 'auto' })
      const headers = new Headers({ 'Idempotency-Key': key })
      const report = reportOf(await call(service.url, { method: 'POST', headers }))
      expect(report.idempotencyKey).toBe(key)
      expect(keysOf(service)).toEqual([key, key])
    },
  )
})

it.concurrent.each([301, 302, 307])('a redirect comes back as it is (%s)', async (status) => {
  const elsewhere = await startService()
  const service = await startService(answer(status, { location: elsewhere.url }))
  const call = caller(service)
  for (const asked of [
    call(service.url),
    call(service.url, { method: 'POST', headers: KEY }),
    call(new Request(service.url, { redirect: 'follow' })),
  ]) {
    const response = await asked
    expect([response.status, response.headers.get('location')]).toEqual([status, elsewhere.url])
  }
  const refused = call(service.url, { redirect: 'error' })
  await expect(refused).rejects.toMatchObject({ code: 'network', cause: expect.any(TypeError) })
  expect([elsewhere.requests.length, service.requests.length]).toEqual([0, 4])
})

describe.concurrent('is a TypeError before anything is sent', () => {
  const PUT = { method: 'PUT' }
  const large = (): ReadableStream => stream(Buffer.alloc(1000), Buffer.alloc(1000))
  const ADDRESSES: Record<string, [address: (url: string) => string, RegExp]> = {
    'another origin': [() => 'http://127.0.0.1:1/', /http:\/\/127\.0\.0\.1:1 is not in the option/],
    'another name of it': [(url) => url.replace('127.0.0.1', 'localhost'), /not in the option/],
    'another scheme': [() => 'data:text/plain,x', /not in the option `origins`/],
    'a blob of the origin': [(url) => `blob:${url}`, /not in the option `origins`/],
    'a relative address': [() => '/orders', /absolute URL/],
    'a password': [(url) => url.replace('//', '//me:hush@'), /user name or password/],
  }
  const INITS: Record<string, [init: unknown, RegExp]> = {
    'an authorization header': [{ headers: { Authorization: 'Bearer mine' } }, /authorization/],
    'a proof of the caller': [{ headers: { DPoP: 'mine' } }, /dpop is set by serviceFetch/],
    "redirect: 'follow'": [{ redirect: 'follow' }, /redirect/],
    'no idempotency key': [{ headers: { 'idempotency-key': 'two words' } }, /idempotency-key/],
    'a header that is none': [{ headers: { 'x-secret': 'hush\u0000' } }, /headers/],
    'a signal that is none': [{ signal: {} }, /signal/],
    TRACE: [{ method: 'TRACE' }, /TRACE/],
    'a GET with a body': [{ method: 'GET', body: 'x' }, /body/],
    'init that is none': ['POST', /init/],
    'init whose members are inherited': [Object.create({ method: 'DELETE' }), /init/],
    'a body above its limit': [{ ...PUT, body: 'x'.repeat(1025) }, /maxBodyBytes/],
    'a stream above its limit': [{ ...PUT, body: large() }, /maxBodyBytes/],
    'a stream of texts': [{ ...PUT, body: ReadableStream.from(['x']) }, /body/],
  }

  async function expectNotSent(address: (url: string) => string, init: unknown, named: RegExp) {
    const service = await startService()
    const source = countingSource()
    const call = serviceFetch(source, { origins: [service.url], maxBodyBytes: 1024 })
    const called = call(address(service.url), init as RequestInit)
    const error: unknown = await called.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect((error as TypeError).message).toMatch(named)
    expect((error as TypeError).message).not.toMatch(/hush|mine|two words/)
    expect(source.asked).toEqual([])
    expect(service.requests).toHaveLength(0)
  }

  it.each(Object.entries(ADDRESSES))('%s', (_name, [address, named]) =>
    expectNotSent(address, {}, named),
  )
  it.each(Object.entries(INITS))('%s', (_name, [init, named]) => expectNotSent(String, init, named))

  it('a stream that fails, with its error as the cause', async () => {
    const service = await startService()
    const cause = new Error('the disk is gone')
    const body = ReadableStream.from(
      (async function* () {
        yield Buffer.from('half of ')
        throw cause
      })(),
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
