import { describe, expect, it } from 'vitest'
import { fetchKeySet } from '../../../src/verification/key-set/fetch-key-set.js'
import {
  type Behaviour,
  bomb,
  flood,
  MEBIBYTE,
  padded,
  redirectTo,
  respond,
  serve,
} from '../../support/issuer/key-set-server.js'
import { openKeySetServer } from '../../support/issuer/open-key-set.js'
import { until } from '../../support/until.js'
import { DOCUMENT, failure, LIMIT, request } from './fetch-kit.js'

describe('a failure is', () => {
  it.each([201, 204, 206, 400, 404, 503])('the status %d, whatever the body', async (status) => {
    const body = status === 204 ? '' : JSON.stringify(DOCUMENT)
    const server = await openKeySetServer(respond(`${status} Status`, body))
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('status'))
  })

  it.each([301, 302, 303, 307, 308])('the redirect %d, which is not followed', async (status) => {
    const elsewhere = await openKeySetServer(serve(DOCUMENT))
    const server = await openKeySetServer(respond(`${status} Go`, '', { location: elsewhere.url }))
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('status'))
    server.behave(redirectTo('/jwks.json'))
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('status'))
    expect(elsewhere.requests).toEqual([])
    expect(server.requests).toHaveLength(2)
  })

  it('a redirect that a fetch of the user has followed', async () => {
    const fetch = async (): Promise<Response> => {
      const response = Response.json(DOCUMENT)
      Object.defineProperty(response, 'redirected', { value: true })
      return response
    }
    const asking = request('https://core.example/', { fetch })
    await expect(fetchKeySet(asking)).rejects.toEqual(failure('status'))
  })

  it('what is no UTF-8', async () => {
    const body = Buffer.concat([
      Buffer.from('{"keys":[],"x":"'),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ])
    const server = await openKeySetServer(respond('200 OK', body))
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('malformed'))
  })

  it('a byte more than 64 KiB', async () => {
    const server = await openKeySetServer(respond('200 OK', padded(DOCUMENT, LIMIT + 1)))
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('too_large'))
  })

  it('10 MiB, of which little is read', async () => {
    const { behaviour, taken } = flood(DOCUMENT, 10 * MEBIBYTE)
    const server = await openKeySetServer(behaviour)
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('too_large'))
    await until('the connection is gone', async () => server.connections() === 0)
    expect(taken()).toBeLessThan(8 * MEBIBYTE)
  })

  it.each([
    ['gzip', 512],
    ['br', 64],
  ] as const)('a %s bomb of %d MiB, which is not unpacked', async (encoding, mebibytes) => {
    const server = await openKeySetServer(bomb(DOCUMENT, encoding, mebibytes))
    const before = process.memoryUsage().rss
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('too_large'))
    expect(process.memoryUsage().rss - before).toBeLessThan(128 * MEBIBYTE)
  })

  it('a compressed answer that is garbled or cut off', async () => {
    const garbled = respond('200 OK', 'no gzip', { 'content-encoding': 'gzip' })
    const server = await openKeySetServer(garbled)
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('network'))
    const cutOff: Behaviour = (socket) => {
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"keys":[]}')
    }
    server.behave(cutOff)
    await expect(fetchKeySet(request(server.url))).rejects.toEqual(failure('network'))
  })

  it('whatever a fetch of the user throws or returns', async () => {
    const fetches = [
      () => {
        throw new Error('broken')
      },
      async () => Promise.reject(undefined),
      async () => undefined,
      async () => ({ status: 200 }),
    ] as unknown as (typeof globalThis.fetch)[]
    for (const fetch of fetches) {
      const asking = request('https://core.example/', { fetch })
      await expect(fetchKeySet(asking)).rejects.toEqual(failure('network'))
    }
  })
})
