import { describe, expect, it } from 'vitest'
import { serveTagged } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { nextKeySetEvent } from './key-set-events.js'
import { openKeySet } from './open-key-set.js'

const jwk = shapeOfKey('a', 2048)
const DOCUMENT = { keys: [jwk] }

describe('revalidation', () => {
  it('asks with the ETag, and a 304 makes the set fresh again', async () => {
    const tagged = serveTagged(DOCUMENT, '"1"', { 'cache-control': 'max-age=60' })
    const { server, clock, keySet, source } = await openKeySet([tagged])
    await keySet.ready()
    clock.advance(30)
    const notModified = nextKeySetEvent('not_modified', server)
    source.current('a')
    await notModified
    expect(server.requests[1]?.headers.get('if-none-match')).toBe('"1"')
    expect(keySet.health()).toMatchObject({ state: 'fresh', ageSeconds: 0, keys: ['a'] })
    expect(keySet.health().expiresAt).toBe(clock() / 1000 + 60)
  })

  it('after a set has expired asks for all of it', async () => {
    const tagged = serveTagged(DOCUMENT, '"1"', { 'cache-control': 'max-age=60' })
    const { server, clock, keySet, source } = await openKeySet([tagged])
    await keySet.ready()
    clock.advance(60)
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
    expect(server.requests[1]?.headers.has('if-none-match')).toBe(false)
  })

  it('asks for all of it where the set expired while a 304 was on its way', async () => {
    const { server, clock, keySet, source } = await openKeySet([
      serveTagged(DOCUMENT, '"1"', { 'cache-control': 'max-age=60' }),
    ])
    await keySet.ready()
    clock.advance(59)
    server.behave(
      (socket, asked) => {
        clock.advance(1)
        serveTagged(DOCUMENT, '"1"')(socket, asked)
      },
      serveTagged(DOCUMENT, '"1"'),
    )
    expect(source.current('a')).toMatchObject({ kid: 'a' })
    expect(await source.find('z')).toBeUndefined()
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
    expect(server.requests[1]?.headers.get('if-none-match')).toBe('"1"')
    expect(server.requests[2]?.headers.has('if-none-match')).toBe(false)
  })
})
