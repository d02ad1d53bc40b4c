import { memoryStore, requireIdempotencyKey } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { parseIdempotencyOptions } from '../../../src/middleware/idempotency-key/idempotency-options.js'

const store = memoryStore()
afterAll(() => store.close())

describe('The options of requireIdempotencyKey', () => {
  it('have the defaults of the contract', () => {
    expect(parseIdempotencyOptions({ store })).toEqual({
      isCoupled: false,
      runOnce: expect.any(Function),
      dependency: expect.anything(),
      reportFailure: expect.any(Function),
      retentionMs: 86_400_000,
      maxBytes: 262_144,
      operation: undefined,
      fingerprint: undefined,
      storedHeaders: new Set([
        'content-type',
        'content-encoding',
        'content-language',
        'content-disposition',
        'content-location',
        'location',
        'etag',
        'last-modified',
        'link',
      ]),
      runsWithoutKey: false,
      usedTokens: undefined,
    })
  })

  it('may be at their ends', () => {
    for (const options of [
      { retentionSeconds: 1, leaseSeconds: 1, maxRunSeconds: 1, maxResponseBytes: 0 },
      { retentionSeconds: 31_536_000, leaseSeconds: 3600, maxRunSeconds: 86_400 },
      { leaseSeconds: undefined, operation: 'o', fingerprint: () => '', storedHeaders: [] },
    ]) {
      expect(() => requireIdempotencyKey({ store, ...options })).not.toThrow()
    }
    expect(parseIdempotencyOptions({ store, storedHeaders: ['ETag'] }).storedHeaders).toEqual(
      new Set(['content-type', 'content-encoding', 'etag']),
    )
  })

  it.each<[string, unknown]>([
    ['the options', undefined],
    ['the options', []],
    ['store', {}],
    ['store', { store: { reserve() {}, renew() {} } }],
    ['retentionSeconds', { store, retentionSeconds: 0 }],
    ['retentionSeconds', { store, retentionSeconds: 31_536_001 }],
    ['leaseSeconds', { store, leaseSeconds: 0.5 }],
    ['leaseSeconds', { store, leaseSeconds: 3601 }],
    ['leaseSeconds', { store, leaseSeconds: '30' }],
    ['maxRunSeconds', { store, maxRunSeconds: 0 }],
    ['maxRunSeconds', { store, maxRunSeconds: 86_401 }],
    ['maxRunSeconds', { store, maxRunSeconds: Number.POSITIVE_INFINITY }],
    ['whenAbandoned', { store, whenAbandoned: 'retry' }],
    ['maxResponseBytes', { store, maxResponseBytes: -1 }],
    ['maxResponseBytes', { store, maxResponseBytes: 1.5 }],
    ['operation', { store, operation: '' }],
    ['operation', { store, operation: /x/ }],
    ['fingerprint', { store, fingerprint: 'x' }],
    ['storedHeaders', { store, storedHeaders: 'etag' }],
    ...['', 'a b', 'a:', 'é', 5, 'Set-Cookie', 'Connection', 'keep-alive', 'TE', 'Trailer'].map(
      (name): [string, unknown] => ['storedHeaders[0]', { store, storedHeaders: [name] }],
    ),
    ...['Transfer-Encoding', 'upgrade', 'Proxy-Authenticate', 'proxy-'].map(
      (name): [string, unknown] => ['storedHeaders[1]', { store, storedHeaders: ['etag', name] }],
    ),
    ['missingKey', { store, missingKey: 'RUN' }],
    ['singleUse', { store, singleUse: 1 }],
    ['ttl', { store, ttl: 5 }],
  ])('are refused when the middleware is made, naming %s: %j', (name, options) => {
    const make = (): unknown => requireIdempotencyKey(options as { store: typeof store })
    expect(make).toThrow(TypeError)
    expect(make).toThrow(name)
  })
})
