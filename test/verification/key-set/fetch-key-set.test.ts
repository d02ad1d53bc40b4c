import { describe, expect, it } from 'vitest'
import { fetchKeySet } from '../../../src/verification/key-set/fetch-key-set.js'
import {
  type Behaviour,
  bomb,
  drip,
  dripHeaders,
  flood,
  hang,
  headersThenHang,
  MEBIBYTE,
  padded,
  respond,
  serve,
  serveTagged,
} from '../../support/issuer/key-set-server.js'
import { openKeySetServer } from '../../support/issuer/open-key-set.js'
import { manualClock } from '../../support/manual-clock.js'
import { until } from '../../support/until.js'
import { DOCUMENT, failure, LIMIT, request } from './fetch-kit.js'

describe('a good answer', () => {
  it('brings the document, its validators and its freshness', async () => {
    const headers = { etag: '"1"', 'last-modified': 'yesterday', 'cache-control': 'max-age=60' }
    const server = await openKeySetServer(serve(DOCUMENT, headers))
    expect(await fetchKeySet(request(server.url, { clock: manualClock() }))).toEqual({
      kind: 'modified',
      document: DOCUMENT,
      validators: { etag: '"1"', lastModified: 'yesterday' },
      freshness: { leftSeconds: 60, maxAgeSeconds: 60 },
    })
  })

  it('is asked for as JSON, with GET, without validators and without credentials', async () => {
    const server = await openKeySetServer(serve(DOCUMENT))
    await fetchKeySet(request(server.url))
    const [asked] = server.requests
    expect(asked?.line).toBe('GET /jwks.json HTTP/1.1')
    expect(asked?.headers.get('accept')).toBe('application/jwk-set+json, application/json')
    for (const name of ['if-none-match', 'if-modified-since', 'authorization', 'cookie']) {
      expect(asked?.headers.has(name)).toBe(false)
    }
  })

  it('is older by the time that it took, on the clock of the key set', async () => {
    const clock = manualClock()
    const slow: Behaviour = (socket, asked) => {
      clock.advance(20)
      serve(DOCUMENT, { 'cache-control': 'max-age=60', age: '10' })(socket, asked)
    }
    const server = await openKeySetServer(slow)
    const { freshness } = await fetchKeySet(request(server.url, { clock }))
    expect(freshness.leftSeconds).toBe(30)
  })

  it('may have exactly 64 KiB', async () => {
    const server = await openKeySetServer(respond('200 OK', padded(DOCUMENT, LIMIT)))
    expect(await fetchKeySet(request(server.url))).toMatchObject({ document: DOCUMENT })
  })

  it('may come compressed, and in pieces', async () => {
    const server = await openKeySetServer(bomb(DOCUMENT, 'gzip', 0), bomb(DOCUMENT, 'br', 0))
    expect(await fetchKeySet(request(server.url))).toMatchObject({ document: DOCUMENT })
    expect(await fetchKeySet(request(server.url))).toMatchObject({ document: DOCUMENT })
    server.behave(drip(DOCUMENT, 1))
    expect(await fetchKeySet(request(server.url))).toMatchObject({ document: DOCUMENT })
  })
})

describe('a 304', () => {
  const validators = { etag: '"1"', lastModified: 'Thu, 01 Jan 2026 00:00:00 GMT' }

  it('is asked for with what the server gave, and keeps the earlier max-age', async () => {
    const server = await openKeySetServer(serveTagged(DOCUMENT, '"1"'))
    const asking = request(server.url, { validators, earlierMaxAgeSeconds: 60 })
    expect(await fetchKeySet({ ...asking, clock: manualClock() })).toEqual({
      kind: 'not_modified',
      freshness: { leftSeconds: 60, maxAgeSeconds: 60 },
    })
    const [asked] = server.requests
    expect(asked?.headers.get('if-none-match')).toBe('"1"')
    expect(asked?.headers.get('if-modified-since')).toBe(validators.lastModified)
  })

  it.each([
    ['without any set', undefined],
    ['for a set that came without validators', {}],
    ['for a set whose validators were empty', { etag: '', lastModified: '' }],
  ])('is a failure where it was not asked for: %s', async (_name, unasked) => {
    const server = await openKeySetServer(respond('304 Not Modified', ''))
    const asking = request(server.url, { validators: unasked })
    await expect(fetchKeySet(asking)).rejects.toEqual(failure('status'))
  })
})

describe('the deadline bounds the whole exchange', () => {
  it.each<[string, Behaviour]>([
    ['a hang before the headers', hang],
    ['a hang after the headers', headersThenHang],
    ['a body that drips', drip({ keys: Array(500).fill({}) }, 10)],
    ['a body of one byte a second', drip(DOCUMENT, 1000)],
    ['headers that drip', dripHeaders(DOCUMENT, 10)],
  ])('%s', async (_name, behaviour) => {
    const server = await openKeySetServer(behaviour)
    const startedAt = performance.now()
    const asking = request(server.url, { timeoutMs: 200 })
    await expect(fetchKeySet(asking)).rejects.toEqual(failure('timeout'))
    expect(performance.now() - startedAt).toBeLessThan(2000)
    await until('the connection is gone', async () => server.connections() === 0)
  })

  it('a fetch of the user that pays no attention to its signal', async () => {
    const never = (): Promise<Response> => new Promise(() => {})
    const asking = request('https://core.example/', { fetch: never, timeoutMs: 50 })
    await expect(fetchKeySet(asking)).rejects.toEqual(failure('timeout'))
    const body = new ReadableStream({ pull: () => new Promise(() => {}) })
    const stuck = async (): Promise<Response> => new Response(body)
    const reading = request('https://core.example/', { fetch: stuck, timeoutMs: 50 })
    await expect(fetchKeySet(reading)).rejects.toEqual(failure('timeout'))
  })
})

it('is given up when its signal says so, and lets go of the connection', async () => {
  const server = await openKeySetServer(headersThenHang)
  const giveUp = new AbortController()
  const asking = fetchKeySet(request(server.url, { signal: giveUp.signal }))
  await server.requested(1)
  giveUp.abort(new Error('enough'))
  await expect(asking).rejects.toEqual(failure('network'))
  await until('the connection is gone', async () => server.connections() === 0)
})

it('lets go of the connection after an answer that it did not read to the end', async () => {
  const { behaviour } = flood(DOCUMENT, 10 * MEBIBYTE)
  const notFound: Behaviour = (socket, asked) => {
    socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 99999999\r\n\r\n')
    behaviour(socket, asked)
  }
  const server = await openKeySetServer(notFound)
  await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('status'))
  await until('the connection is gone', async () => server.connections() === 0)
})
