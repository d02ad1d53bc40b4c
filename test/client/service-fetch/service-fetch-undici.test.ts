import { Agent, Request as UndiciRequest, fetch as undiciFetch } from 'undici'
import { describe, expect, it } from 'vitest'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import { countingSource, ok, startService, unavailable } from '../scripted-service.js'

/** undici declares types of its own, which are those of the standard. */
const fetchOf = (given: unknown): typeof globalThis.fetch => given as typeof globalThis.fetch
const inputOf = (request: unknown): globalThis.Request => request as globalThis.Request

describe("undici's own Request", () => {
  it('is sent by its own fetch, with its method, headers and body, again where that is harmless', async () => {
    const service = await startService(unavailable(), ok)
    const call = serviceFetch(countingSource(), {
      origins: [service.url],
      fetch: fetchOf(undiciFetch),
    })
    const request = new UndiciRequest(`${service.url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k-1', 'x-own': 'y' },
      body: '{"a":1}',
    })
    const response = await call(inputOf(request))
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ ok: true })
    expect(service.requests).toHaveLength(2)
    for (const { method, path, headers, body } of service.requests) {
      expect({ method, path, body: body.toString() }).toEqual({
        method: 'POST',
        path: '/orders',
        body: '{"a":1}',
      })
      expect(headers).toMatchObject({ 'x-own': 'y', 'idempotency-key': 'k-1' })
    }
    expect(service.tokens[0]).toMatch(/^Bearer token-1/)
  })

  it('keeps its dispatcher and its signal', async () => {
    const service = await startService(ok)
    let dispatched = 0
    const dispatcher = new Agent().compose((dispatch) => (options, handler) => {
      dispatched += 1
      return dispatch(options, handler)
    })
    const call = serviceFetch(countingSource(), {
      origins: [service.url],
      fetch: fetchOf(undiciFetch),
    })
    const request = new UndiciRequest(service.url, { dispatcher })
    expect((await call(inputOf(request))).status).toBe(200)
    expect(dispatched).toBe(1)
    await dispatcher.close()
    const reason = new Error('no more')
    const aborted = new UndiciRequest(service.url, { signal: AbortSignal.abort(reason) })
    await expect(call(inputOf(aborted))).rejects.toBe(reason)
    expect(service.requests).toHaveLength(1)
  })

  it('goes to no other origin, and to none with a header of authorization', async () => {
    const service = await startService(ok)
    const call = serviceFetch(countingSource(), {
      origins: ['https://orders.example'],
      fetch: fetchOf(undiciFetch),
    })
    await expect(call(inputOf(new UndiciRequest(service.url)))).rejects.toThrow(
      /is not in the option `origins`/,
    )
    const authorized = new UndiciRequest('https://orders.example/', {
      headers: { authorization: 'Bearer x' },
    })
    await expect(call(inputOf(authorized))).rejects.toThrow(/authorization is set by serviceFetch/)
    expect(service.requests).toHaveLength(0)
  })

  it('is rejected before anything is sent, with the reason, where fetch is not its own', async () => {
    const service = await startService(ok)
    const call = serviceFetch(countingSource(), { origins: [service.url] })
    const failure = call(inputOf(new UndiciRequest(service.url)))
    await expect(failure).rejects.toThrow(TypeError)
    await expect(failure).rejects.toThrow(
      'serviceFetch: the Request is of another implementation of fetch: pass that one as the option `fetch`',
    )
  })
})
