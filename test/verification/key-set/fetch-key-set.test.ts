import { describe, expect, it } from 'vitest'
import { fetchKeySet, type KeySetRequest } from '../../../src/verification/key-set/fetch-key-set.js'
import {
  type Behaviour,
  bomb,
  drip,
  flood,
  MEBIBYTE,
  padded,
  respond,
  serve,
} from '../../support/issuer/key-set-server.js'
import { manualClock } from '../../support/manual-clock.js'
import { until } from '../../support/until.js'
import { openKeySetServer } from './open-key-set.js'

const DOCUMENT = { keys: [{ kid: 'a' }] }
/** Bytes of the largest key set. */
const LIMIT = 64 * 1024

const request = (jwksUri: string, more: Partial<KeySetRequest> = {}): KeySetRequest => ({
  jwksUri,
  fetch: globalThis.fetch,
  timeoutMs: 10_000,
  clock: Date.now,
  validators: undefined,
  earlierMaxAgeSeconds: undefined,
  signal: new AbortController().signal,
  ...more,
})

const failure = (code: string): unknown => expect.objectContaining({ name: 'FetchFailure', code })

describe('a good answer', () => {
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
  it('is asked for by its date, too', async () => {
    const server = await openKeySetServer(respond('304 Not Modified', ''))
    const lastModified = 'Thu, 01 Jan 2026 00:00:00 GMT'
    const asking = request(server.url, { validators: { lastModified } })
    expect(await fetchKeySet(asking)).toMatchObject({ kind: 'not_modified' })
    expect(server.requests[0]?.headers.get('if-modified-since')).toBe(lastModified)
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

describe('a fetch of the user', () => {
  const redirected = Object.defineProperty(Response.json(DOCUMENT), 'redirected', { value: true })
  const stuck = new ReadableStream({ pull: () => new Promise(() => {}) })
  it.each<[string, string, () => unknown]>([
    ['has followed a redirect', 'status', async () => redirected],
    ['throws', 'network', () => raise()],
    ['rejects', 'network', () => Promise.reject(undefined)],
    ['gives nothing', 'network', async () => undefined],
    ['gives what is no response', 'network', async () => ({ status: 200 })],
    ['ignores its signal', 'timeout', () => new Promise(() => {})],
    ['ignores it in the body', 'timeout', async () => new Response(stuck)],
  ])('that %s is a failure: %s', async (_what, code, given) => {
    const fetch = given as typeof globalThis.fetch
    const asking = request('https://core.example/', { fetch, timeoutMs: 50 })
    await expect(fetchKeySet(asking)).rejects.toEqual(failure(code))
  })
})

it('reads little of 10 MiB', async () => {
  const { behaviour, taken } = flood(DOCUMENT, 10 * MEBIBYTE)
  const server = await openKeySetServer(behaviour)
  await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('too_large'))
  await until('the connection is gone', async () => server.connections() === 0)
  expect(taken()).toBeLessThan(8 * MEBIBYTE)
})

it.each([
  ['gzip', 512],
  ['br', 64],
] as const)('does not unpack a %s bomb of %d MiB', async (encoding, mebibytes) => {
  const server = await openKeySetServer(bomb(DOCUMENT, encoding, mebibytes))
  const before = process.memoryUsage().rss
  await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('too_large'))
  expect(process.memoryUsage().rss - before).toBeLessThan(128 * MEBIBYTE)
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

function raise(): never {
  throw new Error('broken')
}
