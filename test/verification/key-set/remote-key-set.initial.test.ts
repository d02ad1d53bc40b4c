import { describe, expect, it } from 'vitest'
import { hang, hangUp, serve } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { collectKeySetEvents, nextKeySetEvent } from './key-set-events.js'
import { openKeySet } from './open-key-set.js'

const jwk = shapeOfKey('a', 2048)
const other = shapeOfKey('b', 2048)
const DOCUMENT = { keys: [jwk] }

describe('initial', () => {
  it('is there at once, stale, and is refreshed unasked', async () => {
    const { server, clock, keySet } = await openKeySet([serve({ keys: [other] })], {
      initial: DOCUMENT,
    })
    const expiresAt = clock() / 1000 + 3600
    expect(keySet.health()).toEqual({ state: 'stale', ageSeconds: 0, keys: ['a'], expiresAt })
    const fetched = nextKeySetEvent('fetched', server)
    await server.requested(1)
    const changes = { added: ['b'], replaced: [], removed: ['a'] }
    expect(await fetched).toEqual({ type: 'fetched', jwksUri: server.url, ...changes })
    expect(keySet.health()).toMatchObject({ state: 'fresh', keys: ['b'] })
  })

  it('does not satisfy ready, which waits for the first fetch', async () => {
    const { server, keySet } = await openKeySet([hangUp], { initial: DOCUMENT })
    await expect(keySet.ready()).rejects.toThrow('network')
    expect(keySet.health()).toMatchObject({ state: 'stale', keys: ['a'], lastError: 'network' })
    server.behave(serve({ keys: [other] }))
    await keySet.ready()
    expect(keySet.health()).toMatchObject({ state: 'fresh', keys: ['b'] })
  })

  it.each<[string, object]>([
    ['an empty list of keys', { keys: [] }],
    ['keys that are no objects', { keys: [null, 5, 'a', []] }],
    ['no usable key', { keys: [shapeOfKey('small', 1024)] }],
    ['33 keys', { keys: [jwk, ...Array(32).fill({})] }],
    ['more than 64 KiB', { keys: [jwk], padding: ' '.repeat(64 * 1024) }],
  ])('counts as absent with %s', async (_name, initial) => {
    const { server, keySet } = await openKeySet([serve(DOCUMENT)], { initial })
    expect(keySet.health()).toEqual({ state: 'cold', keys: [] })
    expect(server.requests).toHaveLength(0)
    await keySet.ready()
    expect(keySet.health().keys).toEqual(['a'])
  })

  it('is screened like a response, and its skipped keys are told', async () => {
    const eventsOf = collectKeySetEvents()
    const twins = { keys: [jwk, other, { ...other, n: jwk.n }] }
    const { server, keySet } = await openKeySet([hang], { initial: twins })
    expect(keySet.health().keys).toEqual(['a'])
    const skipped = { type: 'key_skipped', reason: 'key_id_repeated', keyId: 'b' }
    expect(eventsOf(server.url)).toEqual([{ ...skipped, jwksUri: server.url }])
  })

  it('is taken as it is at that time', async () => {
    const initial = { keys: [{ ...jwk }] }
    const { keySet } = await openKeySet([hang], { initial })
    initial.keys.pop()
    expect(keySet.health().keys).toEqual(['a'])
  })
})
