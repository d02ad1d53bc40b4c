import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type CallReport, reportOf } from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import { until } from '../../support/until.js'
import {
  answer,
  caller,
  countingSource,
  ok,
  type Reply,
  startService,
  unavailable,
} from '../scripted-service.js'

const KEYED: RequestInit = { method: 'POST', body: 'x', headers: { 'idempotency-key': 'order-1' } }

/** Server-sent events, until the connection is gone. */
function events() {
  let open: ServerResponse | undefined
  const reply: Reply = (response) => {
    open = response
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.write('data: 1\n\n')
  }
  return {
    reply,
    send: (text: string) => open?.write(text),
    isGone: async () => open?.closed === true,
  }
}

const LIMITS = { attemptTimeoutMs: 1200, deadlineMs: 1200 }
const BEYOND_MS = 1300

// The first use of fetch in a process takes long.
beforeAll(() => fetch('data:,'))

const text = (chunk: Uint8Array | undefined) => Buffer.from(chunk ?? []).toString()

describe.concurrent('what flows', () => {
  it('server-sent events come one by one, beyond the time of an attempt and the deadline', async () => {
    const { reply, send, isGone } = events()
    const service = await startService(reply)
    const call = caller(service, LIMITS)
    const response = await call(service.url)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(response.url).toBe(`${service.url}/`)
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect(text((await reader.read()).value)).toBe('data: 1\n\n')
    await delay(BEYOND_MS)
    send('data: 2\n\n')
    expect(text((await reader.read()).value)).toBe('data: 2\n\n')
    await reader.cancel()
    await until('the connection is gone', isGone)
  })

  it('an answer with a status that no Response can have is given up', async () => {
    let open: ServerResponse | undefined
    const service = await startService((response) => {
      open = response
      response.socket?.write('HTTP/1.1 666 Odd\r\ncontent-length: 9\r\n\r\nok')
    })
    await expect(caller(service, { maxAttempts: 1 })(service.url)).rejects.toThrow()
    await until('the connection is gone', async () => open?.closed === true)
  }, 5000)

  it('ends with the signal of the caller, and its reason', async () => {
    const { reply, isGone } = events()
    const service = await startService(reply)
    const ending = new AbortController()
    const response = await caller(service)(service.url, { signal: ending.signal })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    const next = reader.read()
    const reason = new Error('enough')
    ending.abort(reason)
    await expect(next).rejects.toBe(reason)
    await until('the connection is gone', isGone)
  })

  it('ends with a signal that aborts before it is handed over', async () => {
    const { reply, isGone } = events()
    const service = await startService(reply)
    const ending = new AbortController()
    const reason = new Error('by the observer')
    const call = caller(service, { onCall: () => ending.abort(reason) })
    const response = await call(service.url, { signal: ending.signal })
    await expect(response.text()).rejects.toBe(reason)
    await until('the connection is gone', isGone)
  })

  const LARGE = 'x'.repeat(300_000)
  const inChunks: Reply = async (response) => {
    for (let at = 0; at < LARGE.length; at += 50_000) {
      response.write(LARGE.slice(at, at + 50_000))
      await delay(2)
    }
    response.end()
  }

  it.each<[string, Reply]>([
    ['with a length', (res) => inChunks(res.writeHead(200, { 'content-length': LARGE.length }))],
    ['without', inChunks],
  ])('an answer above the limit is whole (%s)', async (_name, reply) => {
    const service = await startService(reply)
    const response = await caller(service, { maxResponseBytes: 100_000 })(service.url)
    expect(await response.text()).toBe(LARGE)
    expect(service.requests).toHaveLength(1)
  })

  it('what breaks while it flows is an error of the body, not another attempt', async () => {
    const broken: Reply = async (response) => {
      response.writeHead(200, { 'content-length': 3000 }).write('x'.repeat(1500))
      await delay(50)
      response.destroy()
    }
    const service = await startService(broken, ok)
    const response = await caller(service, { maxResponseBytes: 1000 })(service.url)
    await expect(response.text()).rejects.toThrow(TypeError)
    expect(service.requests).toHaveLength(1)
  })

  it('a 503 above the limit is given up for the next attempt', async () => {
    let first: ServerResponse | undefined
    const large: Reply = (response) => {
      first = response
      response.writeHead(503, { 'retry-after': '0' }).write('x'.repeat(2000))
    }
    const service = await startService(large, ok)
    const response = await caller(service, { maxResponseBytes: 1000 })(service.url)
    expect(response.status).toBe(200)
    await until('the connection is gone', async () => first?.closed === true)
  })

  it('an answer of just the limit is kept', async () => {
    const service = await startService(answer(200, {}, 'x'.repeat(1000)))
    const ending = new AbortController()
    const call = caller(service, { maxResponseBytes: 1000 })
    const response = await call(service.url, { signal: ending.signal })
    ending.abort()
    expect(await response.text()).toHaveLength(1000)
  })
})

describe.concurrent('an abort ends the call at once, with the reason of the signal', () => {
  const REASON = new Error('of the caller')

  interface Aborted {
    readonly reply: Reply
    readonly source?: { token(): Promise<string> }
    readonly init?: RequestInit
    /** When the abort comes: with so many requests. */
    readonly requests: number
    readonly attempts: CallReport['attempts']
  }

  const ABORTED = { error: 'aborted', waitedMs: 0 } as const
  const PHASES: Record<string, Aborted> = {
    'while the body is read': {
      reply: ok,
      init: { method: 'PUT', body: new ReadableStream({}) },
      requests: 0,
      attempts: [],
    },
    'while a token is waited for': {
      reply: ok,
      source: { token: () => new Promise(() => {}) },
      requests: 0,
      attempts: [ABORTED],
    },
    'while an answer is waited for': { reply: () => {}, requests: 1, attempts: [ABORTED] },
    'in the middle of an answer': {
      reply: (response) => response.writeHead(200).write('half of '),
      requests: 1,
      attempts: [ABORTED],
    },
    'while the next attempt is waited for': {
      reply: unavailable('20'),
      requests: 1,
      attempts: [{ status: 503, waitedMs: 0 }],
    },
  }

  it.each(Object.entries(PHASES))('%s', async (_name, { reply, source, requests, ...given }) => {
    const service = await startService(reply)
    const told: CallReport['attempts'][] = []
    const call = serviceFetch(source ?? countingSource(), {
      origins: [service.url],
      onCall: ({ attempts }) => told.push(attempts),
    })
    const ending = new AbortController()
    const called = call(service.url, { ...KEYED, ...given.init, signal: ending.signal })
    called.catch(() => {})
    await until('it has come so far', async () => service.requests.length >= requests)
    await delay(200)
    const abortedAt = performance.now()
    ending.abort(REASON)
    await expect(called).rejects.toBe(REASON)
    expect(performance.now() - abortedAt).toBeLessThan(1000)
    await delay(30)
    expect(service.requests).toHaveLength(requests)
    expect(told).toEqual([given.attempts])
  })

  it('of a signal that was aborted before', async () => {
    const service = await startService()
    const signal = AbortSignal.abort(REASON)
    await expect(caller(service)(service.url, { signal })).rejects.toBe(REASON)
    const request = new Request(service.url, { signal })
    await expect(caller(service)(request)).rejects.toBe(REASON)
    expect(service.requests).toHaveLength(0)
  })

  it('of the signal of a Request, unless init has one or none', async () => {
    const service = await startService(() => {})
    const ending = new AbortController()
    const request = new Request(service.url, { signal: ending.signal })
    const called = caller(service)(request)
    const other = caller(service, { attemptTimeoutMs: 300, maxAttempts: 1 })(request, {
      signal: null,
    })
    const outcomes = Promise.allSettled([called, other])
    await until('both wait', async () => service.requests.length === 2)
    ending.abort(REASON)
    expect(await outcomes).toMatchObject([{ reason: REASON }, { reason: { code: 'network' } }])
  })

  it('and leaves nothing on a signal that outlives many calls', async () => {
    const service = await startService()
    const { signal } = new AbortController()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    Object.assign(signal, {
      addEventListener(...given: Parameters<typeof add>) {
        listeners += 1
        add(...given)
      },
      removeEventListener(...given: Parameters<typeof remove>) {
        listeners -= 1
        remove(...given)
      },
    })
    const call = caller(service, { maxResponseBytes: 4 })
    for (let made = 0; made < 5; made += 1) await (await call(service.url, { signal })).text()
    const kept = await caller(service)(service.url, { signal })
    expect(reportOf(kept).attempts).toHaveLength(1)
    expect(listeners).toBe(0)
  })
})
