import { describe, expect, it, onTestFinished } from 'vitest'
import { type CoreRequest, callCore } from '../../../src/client/core/call-core.js'
import { serve } from '../../support/receiver/serve.js'

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

const refused = Object.assign(new Error(), { code: 'ECONNREFUSED', syscall: 'connect' })
const closed = Object.assign(new Error(), { code: 'UND_ERR_SOCKET' })

it.each<[string, unknown, boolean]>([
  ['a connection was refused', refused, false],
  ['a connection was closed', closed, true],
  ['nothing is known', undefined, true],
])('tells whether the core may have got it: %s', async (_, cause, mayHaveArrived) => {
  const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }))
  const core = { baseUrl: 'https://core.example', apiKey: KEY, fetch }
  const asked = callCore(core, listing)
  await expect(asked).rejects.toMatchObject({ code: 'unreachable', mayHaveArrived })
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
