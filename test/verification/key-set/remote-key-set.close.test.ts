import { describe, expect, it } from 'vitest'
import { hang, serve } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { until } from '../../support/until.js'
import { collectKeySetEvents } from './key-set-events.js'
import { openKeySet } from './open-key-set.js'

const jwk = shapeOfKey('a', 2048)
const other = shapeOfKey('b', 2048)
const DOCUMENT = { keys: [jwk] }

describe('close', () => {
  it('gives up the fetch under way, and fetches nothing any more', async () => {
    const { server, keySet, source } = await openKeySet([hang])
    const ready = keySet.ready().catch((reason: unknown) => reason)
    await server.requested(1)
    keySet.close()
    keySet.close()
    expect(await ready).toBeInstanceOf(Error)
    await until('the connection is gone', async () => server.connections() === 0)
    await expect(keySet.ready()).rejects.toThrow()
    await expect(source.find('a')).rejects.toThrow()
    expect(server.requests).toHaveLength(1)
  })

  it('is quiet: what was given up is no failure to tell of', async () => {
    const eventsOf = collectKeySetEvents()
    const { server, keySet } = await openKeySet([hang])
    const ready = keySet.ready().catch(() => {})
    await server.requested(1)
    keySet.close()
    await ready
    expect(eventsOf(server.url)).toEqual([])
  })

  it('leaves a set that is held in use until it expires', async () => {
    const { server, clock, keySet, source } = await openKeySet([
      serve(DOCUMENT, { 'cache-control': 'max-age=60' }),
    ])
    await keySet.ready()
    keySet.close()
    clock.advance(59)
    expect(source.current('a')).toMatchObject({ kid: 'a' })
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
    expect(await source.find('unknown')).toBeUndefined()
    await keySet.ready()
    clock.advance(1)
    expect(source.current('a')).toBeUndefined()
    await expect(source.find('a')).rejects.toMatchObject({ code: 'unavailable' })
    expect(keySet.health()).toMatchObject({ state: 'expired', keys: [] })
    expect(server.requests).toHaveLength(1)
  })

  it('keeps an initial set from being refreshed', async () => {
    const { server, keySet } = await openKeySet([serve({ keys: [other] })], { initial: DOCUMENT })
    keySet.close()
    await expect(keySet.ready()).rejects.toThrow()
    expect(keySet.health().keys).toEqual(['a'])
    expect(server.requests).toHaveLength(0)
  })
})
