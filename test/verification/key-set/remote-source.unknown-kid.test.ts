import { describe, expect, it } from 'vitest'
import { type Behaviour, hangUp, serve } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { collectKeySetEvents, nextKeySetEvent } from './key-set-events.js'
import { openReadyKeySet } from './open-key-set.js'

const jwk = shapeOfKey('a', 2048)
const rotated = shapeOfKey('b', 2048)
const before = serve({ keys: [jwk] })
const after = serve({ keys: [rotated, jwk] })
const UNAVAILABLE = { code: 'unavailable', what: 'key_set' }

/** Answers when it is told to. */
function heldBack(answer: Behaviour): { behaviour: Behaviour; release(): void } {
  let release = (): void => {}
  const behaviour: Behaviour = (socket, request) => {
    release = () => answer(socket, request)
  }
  return { behaviour, release: () => release() }
}

describe('an unknown kid', () => {
  it('causes a fetch at once, be the set brand-new, which brings a rotated key', async () => {
    const { server, source } = await openReadyKeySet([before, after])
    expect(await source.find('b')).toMatchObject({ kid: 'b' })
    expect(server.requests).toHaveLength(2)
  })

  it('joins the fetch under way, and causes none when that brings its key', async () => {
    const { behaviour, release } = heldBack(after)
    const { server, clock, source } = await openReadyKeySet([before, behaviour])
    clock.advance(300)
    source.current('a')
    await server.requested(2)
    const asking = source.find('b')
    release()
    expect(await asking).toMatchObject({ kid: 'b' })
    expect(server.requests).toHaveLength(2)
  })

  it('causes one of its own when the fetch that it joined did not bring its key', async () => {
    const { behaviour, release } = heldBack(before)
    const { server, clock, source } = await openReadyKeySet([before, behaviour, after])
    clock.advance(300)
    source.current('a')
    await server.requested(2)
    const asking = ['b', 'b', 'c', 'd'].map((kid) => source.find(kid))
    release()
    const b = expect.objectContaining({ kid: 'b' })
    expect(await Promise.all(asking)).toEqual([b, b, undefined, undefined])
    expect(server.requests).toHaveLength(3)
  })

  it('is lacking once a fetch that began after it came lacks it', async () => {
    const { server, source } = await openReadyKeySet([before])
    expect(await source.find('random')).toBeUndefined()
    expect(server.requests).toHaveLength(2)
  })

  it('shares its fetch with all who come meanwhile, and they share the next', async () => {
    const { server, source } = await openReadyKeySet([before])
    const asking = Array.from({ length: 1000 }, (_, index) => source.find(`random-${index}`))
    expect(new Set(await Promise.all(asking))).toEqual(new Set([undefined]))
    expect(server.requests).toHaveLength(3)
  })

  it('causes two fetches in any ten seconds, and is not looked up beyond that', async () => {
    const eventsOf = collectKeySetEvents()
    const { server, clock, source } = await openReadyKeySet([before])
    const fetchesAfter = async (seconds: number): Promise<number> => {
      clock.advance(seconds)
      const before = server.requests.length
      for (let round = 0; round < 20; round++) {
        const found = await source.find(`${seconds}-${round}`)
        const fetches = server.requests.length - before
        expect(found).toBe(fetches > round ? undefined : 'not_looked_up')
      }
      return server.requests.length
    }
    expect(await fetchesAfter(0)).toBe(3)
    expect(await fetchesAfter(9.9)).toBe(3)
    expect(await fetchesAfter(0.1)).toBe(5)
    expect(await fetchesAfter(5)).toBe(5)
    expect(await fetchesAfter(5)).toBe(7)
    const events = eventsOf(server.url)
    expect(events.filter(({ type }) => type === 'budget_exhausted')).toHaveLength(3)
  })

  it('leaves the budget to others while background refreshes happen', async () => {
    const hasty = { refreshSeconds: 5 }
    const { server, clock, source } = await openReadyKeySet([before], hasty)
    for (let round = 0; round < 5; round++) {
      clock.advance(5)
      const refreshed = nextKeySetEvent('fetched', server)
      source.current('a')
      await refreshed
    }
    expect(server.requests).toHaveLength(6)
    await source.find('x')
    await source.find('y')
    await source.find('z')
    expect(server.requests).toHaveLength(8)
  })

  it('that makes the due refresh happen takes nothing from the budget', async () => {
    const { server, clock, source } = await openReadyKeySet([before])
    clock.advance(300)
    for (const kid of ['x', 'y', 'z']) expect(await source.find(kid)).toBeUndefined()
    expect(await source.find('w')).toBe('not_looked_up')
    expect(server.requests).toHaveLength(1 + 1 + 2)
  })

  it('is the 503 when its fetch fails, and causes none while the back-off runs', async () => {
    const { server, clock, source } = await openReadyKeySet([before, hangUp])
    for (let round = 0; round < 50; round++) {
      await expect(source.find(`random-${round}`)).rejects.toMatchObject(UNAVAILABLE)
    }
    expect(server.requests).toHaveLength(3)
    expect(source.current('a')).toMatchObject({ kid: 'a' })
    clock.advance(1)
    server.behave(before)
    expect(await source.find('random')).toBeUndefined()
  })

  it('is the 503 over budget as long as the last fetch failed', async () => {
    const script = [before, before, before, hangUp]
    const { server, clock, source } = await openReadyKeySet(script, { refreshSeconds: 5 })
    await source.find('x')
    await source.find('y')
    expect(await source.find('z')).toBe('not_looked_up')
    clock.advance(5)
    const failed = nextKeySetEvent('failed', server)
    source.current('a')
    await failed
    await expect(source.find('z')).rejects.toMatchObject(UNAVAILABLE)
    expect(server.requests).toHaveLength(5)
    clock.advance(1)
    await expect(source.find('z')).rejects.toMatchObject(UNAVAILABLE)
    expect(server.requests).toHaveLength(7)
  })

  it('is looked up again after the clock was set back', async () => {
    const { clock, source } = await openReadyKeySet([before])
    for (const kid of ['x', 'y']) expect(await source.find(kid)).toBeUndefined()
    expect(await source.find('z')).toBe('not_looked_up')
    clock.advance(-60)
    expect(await source.find('z')).toBeUndefined()
  })

  it('that objects inherit is as unknown as any', async () => {
    const { clock, source } = await openReadyKeySet([before])
    for (const kid of ['__proto__', 'constructor', 'toString']) {
      clock.advance(10)
      expect(await source.find(kid)).toBeUndefined()
    }
  })
})
