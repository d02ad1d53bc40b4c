import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type CoreClientOptions, coreClient } from '../../../src/migration/core/open-core-client.js'
import { knowSecret, recordOutput } from '../../support/secret-search/index.js'
import { API_KEY } from './scripted-core.js'

const GOOD: CoreClientOptions = { baseUrl: 'https://core.example', apiKey: API_KEY }
const made = (change: object) => coreClient({ ...GOOD, ...change })

it.each<[string, object]>([
  ['the least and the most', { timeoutMs: 1, stageTimeoutMs: 300_000 }],
  [
    'undefined for a default',
    { timeoutMs: undefined, stageTimeoutMs: undefined, fetch: undefined },
  ],
  ['http: where it is allowed', { baseUrl: 'http://core.internal', allowInsecureHttp: true }],
])('coreClient takes %s', (_, change) => {
  expect(Object.keys(made(change))).toContain('stageUsers')
})

describe('coreClient refuses, naming it,', () => {
  it.each<[string, object]>([
    ['baseUrl', { baseUrl: undefined }],
    ['baseUrl', { baseUrl: 'http://core.internal' }],
    ['apiKey', { apiKey: `${API_KEY}\n` }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['timeoutMs', { timeoutMs: 300_001 }],
    ['stageTimeoutMs', { stageTimeoutMs: '120000' }],
    ['allowInsecureHttp', { allowInsecureHttp: 'yes' }],
    ['fetch', { fetch: {} }],
    ['retries', { retries: 3 }],
  ])('%s: %j', (path, change) => {
    knowSecret('an API key', API_KEY)
    expect(() => made(change)).toThrow(TypeError)
    expect(() => made(change)).toThrow(path)
  })

  it('every fault at once', () => {
    const wrong = () => made({ timeoutMs: 0, fetch: 1, more: 1, baseUrl: 'http://core.internal' })
    expect(wrong).toThrow(/timeoutMs .*fetch .*more .*baseUrl /)
  })
})

it('a client shows nothing of its key', () => {
  knowSecret('an API key', API_KEY)
  const client = made({})
  const shown = inspect(client, { showHidden: true, depth: 9 }) + JSON.stringify(client)
  recordOutput('a client', shown)
  expect(shown).not.toContain(API_KEY)
  expect(Object.isFrozen(client)).toBe(true)
})
