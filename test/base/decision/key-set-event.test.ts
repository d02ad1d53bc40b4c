import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it } from 'vitest'
import { announceKeySet } from '../../../src/base/decision/key-set-event.js'

it('reaches who listens on express-service-auth:keys', () => {
  const seen: unknown[] = []
  const listen = (event: unknown): unknown => seen.push(event)
  subscribe('express-service-auth:keys', listen)
  announceKeySet('https://api.example.com/jwks.json?key=s3cret', {
    type: 'failed',
    reason: 'timeout',
  })
  unsubscribe('express-service-auth:keys', listen)
  announceKeySet('https://api.example.com/jwks.json', { type: 'expired' })
  const jwksUri = 'https://api.example.com/jwks.json'
  expect(seen).toEqual([{ type: 'failed', reason: 'timeout', jwksUri }])
})
