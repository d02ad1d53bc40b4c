import { describe, expect, it } from 'vitest'
import { type Behaviour, hang, hangUp, serve } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { collectKeySetEvents, nextKeySetEvent } from './key-set-events.js'
import { openKeySet, openReadyKeySet } from './open-key-set.js'

const jwk = shapeOfKey('a', 2048)
const rotated = shapeOfKey('b', 2048)
const before = serve({ keys: [jwk] })
const after = serve({ keys: [rotated, jwk] })
const UNAVAILABLE = { code: 'unavailable', what: 'key_set' }

describe('without a usable set', () => {
  it('two hundred who ask at once share one fetch', async () => {
    const { server, source } = await openKeySet([before])
    const found = await Promise.all(Array.from({ length: 200 }, () => source.find('a')))
    for (const key of found) expect(key).toMatchObject({ kid: 'a' })
    expect(server.requests).toHaveLength(1)
  })

  it('they share its failure, and while the back-off runs nobody fetches or waits', async () => {
    const { server, clock, source } = await openKeySet([hangUp])
    const asked = Array.from({ length: 200 }, () => source.find('a'))
    for (const result of await Promise.allSettled(asked)) {
      expect(result).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
    }
    expect(server.requests).toHaveLength(2)
    server.behave(before)
    clock.advance(0.499)
    await expect(source.find('a')).rejects.toMatchObject(UNAVAILABLE)
    expect(server.requests).toHaveLength(2)
    clock.advance(0.501)
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
  })

  it('nobody waits for a second fetch, however far the clock leaps meanwhile', async () => {
    const leap: Behaviour = (socket, request) => {
      clock.advance(100)
      hangUp(socket, request)
    }
    const { server, clock, source } = await openKeySet([leap])
    const asking = source.find('a')
    const leaping = nextKeySetEvent('failed', server).then(() => clock.advance(100))
    await expect(asking).rejects.toMatchObject(UNAVAILABLE)
    await leaping
    expect(server.requests).toHaveLength(2)
  })
})

describe('a known key', () => {
  it('never waits for a fetch under way', async () => {
    const { server, clock, keySet, source } = await openReadyKeySet([before, hang])
    clock.advance(300)
    expect(source.current('a')).toMatchObject({ kid: 'a' })
    await server.requested(2)
    expect(source.current('a')).toMatchObject({ kid: 'a' })
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
    expect(keySet.health().state).toBe('stale')
  })

  it('causes one refresh when it is due, none before and none beside it', async () => {
    const { server, clock, source } = await openReadyKeySet([before, hang])
    clock.advance(299)
    for (let round = 0; round < 100; round++) source.current('a')
    clock.advance(1)
    for (let round = 0; round < 100; round++) source.current('a')
    await server.requested(2)
    expect(server.requests).toHaveLength(2)
  })
})

describe('a refresh', () => {
  it('replaces the whole set: what is gone or replaced is not found any more', async () => {
    const replaced = shapeOfKey('a', 2048)
    const gone = serve({ keys: [rotated] })
    const { server, clock, source } = await openReadyKeySet([
      after,
      serve({ keys: [replaced] }),
      gone,
    ])
    const first = source.current('a')
    const swap = async (): Promise<unknown> => {
      clock.advance(300)
      const swapped = nextKeySetEvent('fetched', server)
      source.current('a')
      return swapped
    }
    expect(await swap()).toMatchObject({ added: [], replaced: ['a'], removed: ['b'] })
    expect(source.current('b')).toBeUndefined()
    expect(source.current('a')).not.toEqual(first)
    expect(await swap()).toMatchObject({ added: ['b'], replaced: [], removed: ['a'] })
    expect(source.current('a')).toBeUndefined()
  })

  it('keeps a key that stays as it is', async () => {
    const { source } = await openReadyKeySet([before, after])
    const first = source.current('a')
    await source.find('b')
    expect(source.current('a')).toBe(first)
  })
})

describe('events', () => {
  it('tell the life of a set', async () => {
    const eventsOf = collectKeySetEvents()
    const script = [before, after, hangUp]
    const { server, clock, keySet, source } = await openReadyKeySet(script, {
      maxStaleSeconds: 100,
    })
    await source.find('b')
    await expect(source.find('c')).rejects.toThrow()
    clock.advance(100)
    keySet.health()
    keySet.health()
    const jwksUri = server.url
    expect(eventsOf(jwksUri)).toEqual([
      { type: 'fetched', added: ['a'], replaced: [], removed: [], jwksUri },
      { type: 'fetched', added: ['b'], replaced: [], removed: [], jwksUri },
      { type: 'failed', reason: 'network', jwksUri },
      { type: 'expired', jwksUri },
    ])
  })

  it('tell of a skipped key once, and again when its reason changes or it comes back', async () => {
    const eventsOf = collectKeySetEvents()
    const small = shapeOfKey('odd', 1024)
    const forEncryption = { ...shapeOfKey('odd', 2048), use: 'enc' }
    const lasting = [jwk, small, { ...jwk, kid: '' }, { ...jwk, kid: null }]
    const sets = [lasting, lasting, [jwk, forEncryption], [jwk], [jwk, forEncryption]]
    const { server, clock, source } = await openKeySet(sets.map((keys) => serve({ keys })))
    for (const _ of sets) {
      expect(await source.find('z')).toBeUndefined()
      clock.advance(300)
    }
    const skipped = eventsOf(server.url).filter(({ type }) => type === 'key_skipped')
    expect(skipped.map((event) => 'reason' in event && event.reason)).toEqual([
      'modulus_size',
      'key_id_invalid',
      'not_for_signatures',
      'not_for_signatures',
    ])
    expect(skipped[0]).toMatchObject({ keyId: 'odd', jwksUri: server.url })
    expect(skipped[1]).not.toHaveProperty('keyId')
  })
})

describe('a clock that gives no time', () => {
  it('is a fault of its own, neither a 401 nor a 503, and does no lasting harm', async () => {
    let broken = false
    const clock = (): number => (broken ? Number.NaN : 1_800_000_000_000)
    const { source } = await openReadyKeySet([before], { clock })
    broken = true
    expect(() => source.current('a')).toThrow(TypeError)
    expect(() => source.find('a')).toThrow(TypeError)
    expect(() => source.find('unknown')).toThrow(TypeError)
    broken = false
    expect(source.current('a')).toMatchObject({ kid: 'a' })
  })

  it('while a set is fetched costs that fetch, nothing else', async () => {
    let broken = false
    const clock = (): number => (broken ? Number.NaN : 1_800_000_000_000)
    const breaking: Behaviour = (socket, request) => {
      broken = true
      before(socket, request)
    }
    const { keySet, source } = await openKeySet([breaking, before], { clock })
    await expect(source.find('a')).rejects.toThrow(TypeError)
    broken = false
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
    await keySet.ready()
  })
})
