import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  type CallReport,
  reportOf,
  ServiceCallError,
} from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import type { ServiceFetchOptions } from '../../../src/client/service-fetch/service-fetch-options.js'
import { throwing } from '../../support/throwing.js'
import {
  answer,
  caller,
  countingSource,
  hangUp,
  ok,
  otherRefusal,
  type Reply,
  refusal,
  silence,
  startService,
  unavailable,
} from '../scripted-service.js'

const KEYED: RequestInit = { method: 'POST', body: 'x', headers: { 'idempotency-key': 'order-1' } }
const BARE: RequestInit = { method: 'POST', body: 'x' }

/** A call with what it came to: a status, or the code of its error. */
async function settled(call: Promise<Response>) {
  const [last, report] = await call.then(
    (response): [number | string, CallReport] => [response.status, reportOf(response)],
    (error: ServiceCallError): [number | string, CallReport] => [error.code, error.report],
  )
  return { last, report, outcomes: report.attempts.map(({ status, error }) => status ?? error) }
}

describe.concurrent('a refused token', () => {
  it('is named to the source, which gives another', async () => {
    const service = await startService(refusal, ok)
    const source = countingSource('named')
    const call = serviceFetch(source, { origins: [service.url] })
    expect((await call(service.url, BARE)).status).toBe(200)
    expect(source.asked).toEqual([undefined, 'named-1-of-the-caller'])
  })

  it('that comes again makes the 401 the answer', async () => {
    const service = await startService(otherRefusal, ok)
    const call = serviceFetch(
      { token: async () => 'always-the-same-token' },
      { origins: [service.url] },
    )
    const response = await call(service.url)
    expect(response.status).toBe(401)
    expect(await response.text()).toBe('no')
    expect(reportOf(response).attempts).toHaveLength(1)
  })

  it('is another one a second time: that 401 is the answer', async () => {
    const service = await startService(refusal)
    const response = await caller(service)(service.url)
    expect(response.status).toBe(401)
    expect(service.requests).toHaveLength(2)
  })

  it('may be refused after other faults, too', async () => {
    const service = await startService(unavailable(), refusal, hangUp, ok)
    const { outcomes } = await settled(caller(service)(service.url))
    expect(outcomes).toEqual([503, 401, 'network', 200])
    expect(new Set(service.tokens).size, 'a token for each attempt').toBe(4)
  })
})

describe.concurrent('how often and how long', () => {
  const repeated = async (options: Partial<ServiceFetchOptions>, ...replies: Reply[]) => {
    const service = await startService(...replies)
    return settled(caller(service, options)(service.url))
  }

  it('ends after maxAttempts, with the last answer or the last error', async () => {
    const [answered, lost] = await Promise.all([
      repeated({ maxAttempts: 3 }, unavailable()),
      repeated({ maxAttempts: 2 }, hangUp),
    ])
    expect(answered).toMatchObject({ last: 503, outcomes: [503, 503, 503] })
    expect(lost).toMatchObject({ last: 'network', outcomes: ['network', 'network'] })
  })

  // Its forms: base/fetch.test.ts.
  it('waits what Retry-After says', async () => {
    const { last, report } = await repeated({}, unavailable('1'), ok)
    expect(last).toBe(200)
    expect(report.attempts).toEqual([
      { status: 503, waitedMs: 0 },
      { status: 200, waitedMs: 1000 },
    ])
    expect(report.totalMs).toBeGreaterThanOrEqual(999)
  })

  it.each<[string, Reply]>([
    ['an attempt', silence],
    ['a body', (response) => response.writeHead(200).write('half of')],
  ])('gives up %s that takes too long: network, and another attempt', async (_name, slow) => {
    const { last, outcomes } = await repeated({ attemptTimeoutMs: 1000 }, slow, ok)
    expect({ last, outcomes }).toEqual({ last: 200, outcomes: ['network', 200] })
  })

  it('ends at the deadline within an attempt: deadline', async () => {
    const { last, report, outcomes } = await repeated({ deadlineMs: 1000 }, silence)
    expect({ last, outcomes }).toEqual({ last: 'deadline', outcomes: ['deadline'] })
    expect(report.totalMs).toBeGreaterThanOrEqual(995)
    // Sooner than the attempt would have ended by itself.
    expect(report.totalMs).toBeLessThan(10_000)
  })

  it('does not wait for a fetch that ignores its signal, and keeps its headers apart', async () => {
    const service = await startService(ok)
    const sent: Headers[] = []
    const fetch: typeof globalThis.fetch = (input, init) => {
      sent.push(init?.headers as Headers)
      return sent.length === 1 ? new Promise(() => {}) : globalThis.fetch(input, init)
    }
    const proof = async (): Promise<string> => `proof-${sent.length}`
    const call = serviceFetch(
      { token: async () => 't', proof },
      { origins: [service.url], fetch, attemptTimeoutMs: 1000 },
    )
    await call(service.url)
    expect(sent.map((headers) => headers.get('dpop'))).toEqual(['proof-0', 'proof-1'])
  })
})

describe.concurrent('the source of tokens', () => {
  const failing = (token: () => Promise<string>, options: Partial<ServiceFetchOptions> = {}) =>
    serviceFetch({ token }, { origins: ['http://127.0.0.1:2'], ...options })

  it('that fails ends the call: token', async () => {
    const cause = new Error('the core is down')
    const call = failing(() => Promise.reject(cause))('http://127.0.0.1:2/')
    const error = await call.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ServiceCallError)
    expect(error).toMatchObject({
      name: 'ServiceCallError',
      code: 'token',
      message: 'the call has no token to send',
      cause,
    })
    expect((error as ServiceCallError).report.attempts).toEqual([{ error: 'token', waitedMs: 0 }])
  })

  it.each([undefined, 7, '', 'two words', 'a line\nbreak', 'naïve'])(
    'that gives %j, which is no token, ends the call without showing it',
    async (given) => {
      const call = failing(async () => given as string)('http://127.0.0.1:2/')
      const error = (await call.catch((thrown: unknown) => thrown)) as ServiceCallError
      expect(error.code).toBe('token')
      if (typeof given === 'string' && given !== '')
        expect(String(error.cause)).not.toContain(given)
    },
  )

  it('that gives none in time ends the call: deadline', async () => {
    const call = failing(() => new Promise(() => {}), { deadlineMs: 100 })
    expect((await settled(call('http://127.0.0.1:2/'))).last).toBe('deadline')
  })

  it('that fails after a 401 ends the call with both in the report', async () => {
    const service = await startService(otherRefusal)
    const source = countingSource()
    const token = (options?: { after?: string }) =>
      options?.after === undefined ? source.token() : Promise.reject(new Error('no other'))
    const call = serviceFetch({ token }, { origins: [service.url] })
    const { last, outcomes } = await settled(call(service.url))
    expect({ last, outcomes }).toEqual({ last: 'token', outcomes: [401, 'token'] })
  })
})

describe.concurrent('answers', () => {
  it('come as they are: status, phrase, headers, address, body', async () => {
    const reply: Reply = (response) =>
      response
        .writeHead(418, 'Short and stout', [
          ...['content-type', 'text/plain', 'x-pot', 'tea'],
          ...['set-cookie', 'a=1', 'set-cookie', 'b=2'],
        ])
        .end('tip me over')
    const service = await startService(reply)
    const response = await caller(service)(`${service.url}/pot?of=tea#spout`)
    expect(response).toBeInstanceOf(Response)
    const { status, statusText, ok, redirected, url, bodyUsed } = response
    const plain = await fetch(`${service.url}/pot?of=tea#spout`)
    expect({ status, statusText, ok, redirected, url, bodyUsed }).toEqual({
      ...{ status: 418, statusText: 'Short and stout', ok: false, redirected: false },
      ...{ url: plain.url, bodyUsed: false },
    })
    expect(response.headers.get('x-pot')).toBe('tea')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await response.clone().text()).toBe('tip me over')
    expect(await response.text()).toBe('tip me over')
  })

  it('are decoded as fetch does', async () => {
    const packed = gzipSync(JSON.stringify({ of: 'tea' }))
    const reply: Reply = (response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed)
    const service = await startService(reply)
    expect(await (await caller(service)(service.url)).json()).toEqual({ of: 'tea' })
  })

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('may have no body (%s, %s)', async (method, status) => {
    const service = await startService(answer(status, { 'content-length': '7' }))
    const response = await caller(service)(service.url, { method })
    expect(response.status).toBe(status)
    expect(response.body).toBeNull()
    expect(reportOf(response).attempts).toEqual([{ status, waitedMs: 0 }])
  })

  it('may have a phrase that no Response can have', async () => {
    const reply: Reply = (response) =>
      response.socket?.write('HTTP/1.1 200 Caf\u00e9\r\ncontent-length: 2\r\n\r\nok')
    const service = await startService(reply)
    expect((await settled(caller(service, { maxAttempts: 1 })(service.url))).last).toBe(200)
  })

  it('that are cut in the middle count as lost', async () => {
    const cut: Reply = async (response) => {
      response.writeHead(200, { 'content-length': '100' }).write('the first part')
      await delay(20)
      response.destroy()
    }
    const service = await startService(cut, ok)
    const { last, outcomes } = await settled(caller(service)(service.url))
    expect({ last, outcomes }).toEqual({ last: 200, outcomes: ['network', 200] })
    const bare = await startService(cut, ok)
    expect((await settled(caller(bare)(bare.url, BARE))).last).toBe('network')
  })
})

describe.concurrent('what was done', () => {
  it('is told of a replayed answer, with the key that was sent', async () => {
    const service = await startService(hangUp, answer(201, { 'idempotent-replayed': 'true' }, 'x'))
    const told: unknown[] = []
    const call = caller(service, { onCall: (report) => told.push(report) })
    const report = reportOf(await call(service.url, KEYED))
    expect(report).toEqual({
      attempts: [
        { error: 'network', waitedMs: 0 },
        { status: 201, waitedMs: expect.any(Number) },
      ],
      replayed: true,
      totalMs: expect.any(Number),
      idempotencyKey: 'order-1',
    })
    const { idempotencyKey: _key, ...withoutKey } = report
    expect(told).toEqual([withoutKey])
    expect(Object.isFrozen(report) && Object.isFrozen(report.attempts)).toBe(true)
  })

  it('is told of calls that fail, and of no call that was never made', async () => {
    const service = await startService(hangUp)
    const told: { attempts: readonly unknown[] }[] = []
    const call = caller(service, { onCall: (report) => told.push(report), maxAttempts: 1 })
    await expect(call(service.url)).rejects.toThrow(ServiceCallError)
    await expect(call('http://127.0.0.1:2/')).rejects.toThrow(TypeError)
    expect(told.map(({ attempts }) => attempts)).toEqual([[{ error: 'network', waitedMs: 0 }]])
  })

  it('to an observer that throws or rejects, which changes nothing', async () => {
    const service = await startService()
    const fail = throwing(new Error('of the observer'))
    for (const onCall of [fail, async () => fail()])
      expect((await caller(service, { onCall })(service.url)).status).toBe(200)
  })

  it('is not known of other responses', () => {
    expect(() => reportOf(new Response())).toThrow(TypeError)
  })
})
