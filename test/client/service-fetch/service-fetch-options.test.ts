import { describe, expect, it } from 'vitest'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import type { ServiceFetchOptions } from '../../../src/client/service-fetch/service-fetch-options.js'

const SOURCE = { token: async () => 'a-token' }
const ORIGINS = ['https://orders.example.com']

const made = (options: object) => () => serviceFetch(SOURCE, options as ServiceFetchOptions)

describe('serviceFetch', () => {
  it.each([
    ['https://orders.example.com'],
    ['https://orders.example.com/'],
    ['https://Orders.Example.com:443'],
    ['http://localhost:3000'],
    ['http://127.8.9.1:3000'],
    ['http://[::1]:3000'],
    Array.from({ length: 16 }, (_, index) => `https://orders-${index}.example.com`),
  ])('takes the origin %s', (...origins) => {
    expect(made({ origins })).not.toThrow()
  })

  it.each([
    'orders.example.com',
    'https://orders.example.com/api',
    'https://orders.example.com/?',
    'https://orders.example.com/#',
    'https://me:hush@orders.example.com',
    'http://orders.example.com',
    'null',
    '*',
    '',
    7,
  ])('refuses the origin %j by its place', (origin) => {
    expect(made({ origins: [...ORIGINS, origin] })).toThrow(/^serviceFetch: origins\[1\] must/)
    expect(made({ origins: [...ORIGINS, origin] })).not.toThrow(/hush/)
  })

  it('takes an http: origin elsewhere only where that is allowed', () => {
    const origins = ['http://orders.internal']
    expect(made({ origins, allowInsecureHttp: true })).not.toThrow()
    expect(made({ origins, allowInsecureHttp: 'yes' })).toThrow(/allowInsecureHttp/)
  })

  it.each<[string, unknown]>([
    ['origins', undefined],
    ['origins', []],
    ['origins', Array.from({ length: 17 }, (_, index) => `https://a${index}.example.com`)],
    ['origins', 'https://orders.example.com'],
    ['deadlineMs', 99],
    ['deadlineMs', 600_001],
    ['deadlineMs', Number.NaN],
    ['attemptTimeoutMs', 99],
    ['attemptTimeoutMs', '1000'],
    ['maxAttempts', 0],
    ['maxAttempts', 11],
    ['maxAttempts', 1.5],
    ['idempotencyKey', true],
    ['idempotencyKey', 'order-1'],
    ['idempotencyKey', null],
    ['maxBodyBytes', -1],
    ['maxResponseBytes', Number.POSITIVE_INFINITY],
    ['onCall', 'log'],
    ['fetch', {}],
    ['retries', 3],
  ])('refuses %s: %j by its name', (name, value) => {
    expect(made({ origins: ORIGINS, [name]: value })).toThrow(
      new RegExp(`^serviceFetch: .*${name}`),
    )
    expect(made({ origins: ORIGINS, [name]: value })).toThrow(TypeError)
  })

  it('takes the ends of each range', () => {
    const least = { deadlineMs: 100, attemptTimeoutMs: 100, maxAttempts: 1, maxBodyBytes: 0 }
    const most = { deadlineMs: 600_000, attemptTimeoutMs: 600_000, maxAttempts: 10 }
    expect(made({ origins: ORIGINS, ...least, maxResponseBytes: 0 })).not.toThrow()
    expect(made({ origins: ORIGINS, ...most, idempotencyKey: false })).not.toThrow()
  })

  it.each([undefined, null, 'a-token', {}, { token: 'a-token' }])(
    'refuses the source %j',
    (source) => {
      expect(() => serviceFetch(source as typeof SOURCE, { origins: ORIGINS })).toThrow(TypeError)
    },
  )

  it.each([undefined, null, 'https://orders.example.com'])('refuses the options %j', (options) => {
    expect(made(options as unknown as object)).toThrow(TypeError)
  })
})
