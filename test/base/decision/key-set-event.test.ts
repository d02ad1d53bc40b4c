import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it } from 'vitest'
import { announceKeySet, changesBetween } from '../../../src/base/decision/key-set-event.js'

const one = {}
const keysOf = (entries: Record<string, object>) => new Map(Object.entries(entries))

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

it('names what was added, replaced and removed', () => {
  const before = keysOf({ stays: one, changes: one, goes: one })
  const after = keysOf({ stays: one, changes: {}, comes: one })
  expect(changesBetween(before, after)).toEqual({
    added: ['comes'],
    replaced: ['changes'],
    removed: ['goes'],
  })
})

it('counts all keys of a first set as added', () => {
  expect(changesBetween(undefined, keysOf({ a: one, b: one }))).toEqual({
    added: ['a', 'b'],
    replaced: [],
    removed: [],
  })
})
