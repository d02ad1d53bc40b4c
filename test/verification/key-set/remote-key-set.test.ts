import { type KeySetHealth, type RemoteKeySetOptions, remoteKeySet } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { hang, hangUp, serve, serveTagged } from '../../support/issuer/key-set-server.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { until } from '../../support/until.js'
import { collectKeySetEvents, nextKeySetEvent } from './key-set-events.js'
import { openKeySet, openReadyKeySet } from './open-key-set.js'

const jwk = shapeOfKey('a', 2048)
const other = shapeOfKey('b', 2048)
const DOCUMENT = { keys: [jwk] }

describe('options', () => {
  const jwksUri = 'https://core.example/auth/jwt/jwks.json'

  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /must be an object/],
    ['an unknown option', { jwksUri, refreshSecond: 1 }, /refreshSecond is not an option/],
    ['no jwksUri', {}, /jwksUri must be a non-empty string/],
    ['a relative jwksUri', { jwksUri: '/jwks.json' }, /jwksUri must be an absolute https: URL/],
    ['http: elsewhere', { jwksUri: 'http://core.example/' }, /jwksUri must be https:/],
    ['a password', { jwksUri: 'https://u:p@core.example/' }, /jwksUri must not hold a user name/],
    ['no flag', { jwksUri, allowInsecureHttp: 'yes' }, /allowInsecureHttp must be true/],
    ['initial null', { jwksUri, initial: null }, /initial must be a parsed JWKS document/],
    ['initial as a list', { jwksUri, initial: [jwk] }, /initial must be a parsed JWKS document/],
    ['an initial of one number', { jwksUri, initial: { keys: 5 } }, /initial .* a list of keys/],
    ['an initial without a list', { jwksUri, initial: { keys: { 0: jwk } } }, /initial must be/],
    ['an initial that JSON cannot hold', { jwksUri, initial: { keys: [1n] } }, /initial must be/],
    ['an initial of one key', { jwksUri, initial: jwk }, /initial must be a parsed JWKS/],
    ['fetch that is none', { jwksUri, fetch: {} }, /fetch must be a function/],
    ['a clock that is none', { jwksUri, clock: 1 }, /clock must be a function/],
  ])('refuses %s with a TypeError that names it', (_name, options, message) => {
    const make = (): unknown => remoteKeySet(options as RemoteKeySetOptions)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it.each([
    ['refreshSeconds', 604_800],
    ['maxStaleSeconds', 604_800],
    ['timeoutMs', 60_000],
  ])('takes for %s a number above 0 and at most %d', (name, most) => {
    const make = (value: unknown) => () => remoteKeySet({ jwksUri, [name]: value })
    for (const value of [0, -1, most + 0.1, Number.NaN, Number.POSITIVE_INFINITY, '5', null]) {
      expect(make(value)).toThrow(TypeError)
      expect(make(value)).toThrow(name)
    }
    for (const value of [Number.MIN_VALUE, 0.5, most, undefined]) expect(make(value)).not.toThrow()
  })

  it('names every fault, and repeats no value, which may be secret', () => {
    const faulty = { jwksUri: 'https://user:secret@core.example/', timeoutMs: 0, fetsch: 'secret' }
    const make = (): unknown => remoteKeySet(faulty as unknown as RemoteKeySetOptions)
    expect(make).toThrow(/fetsch.*timeoutMs.*jwksUri|timeoutMs.*fetsch.*jwksUri/)
    expect(make).not.toThrow(/secret@|'secret'/)
  })

  it('allows http: elsewhere when that is written down', () => {
    const insecure = { jwksUri: 'http://core.internal/jwks.json', allowInsecureHttp: true }
    expect(() => remoteKeySet(insecure)).not.toThrow()
  })
})

it('has exactly ready, health and close, for good', async () => {
  const { keySet } = await openKeySet([serve(DOCUMENT)])
  expect(Object.keys(keySet).sort()).toEqual(['close', 'health', 'ready'])
  expect(Object.isFrozen(keySet)).toBe(true)
})

describe('ready', () => {
  it('is what starts the first fetch; making a key set fetches nothing', async () => {
    const { server, keySet } = await openKeySet([serve(DOCUMENT)])
    expect(keySet.health()).toEqual({ state: 'cold', keys: [] })
    await new Promise(setImmediate)
    expect(server.requests).toHaveLength(0)
    await keySet.ready()
    expect(keySet.health()).toMatchObject({ state: 'fresh', keys: ['a'] })
  })

  it('resolves for a set that was fetched once, although it has expired', async () => {
    const { clock, keySet } = await openReadyKeySet([
      serve(DOCUMENT, { 'cache-control': 'max-age=60' }),
    ])
    clock.advance(60)
    expect(keySet.health().state).toBe('expired')
    await keySet.ready()
  })
})

describe('health', () => {
  it('tells state, age, keys and expiry, as JSON, without key material', async () => {
    const { clock, keySet } = await openReadyKeySet([serve({ keys: [jwk, other, { kid: 'bad' }] })])
    clock.advance(7)
    const health = keySet.health()
    const expiresAt = clock() / 1000 - 7 + 3600
    expect(health).toEqual({ state: 'fresh', ageSeconds: 7, keys: ['a', 'b'], expiresAt })
    expect(JSON.parse(JSON.stringify(health))).toEqual(health)
    expect(JSON.stringify(health)).not.toContain(jwk.n)
  })

  it('goes through fresh, stale and expired by max-age, later while fetches fail', async () => {
    const good = serve(DOCUMENT, { 'cache-control': 'max-age=60' })
    const options = { staleIfErrorSeconds: 600 }
    const { clock, keySet, source } = await openKeySet([good, hangUp], options)
    const start = clock() / 1000
    await keySet.ready()
    const at = (seconds: number): KeySetHealth => {
      clock.advance(start + seconds - clock() / 1000)
      return keySet.health()
    }
    expect(at(29.9)).toMatchObject({ state: 'fresh', expiresAt: start + 60 })
    expect(at(30).state).toBe('stale')
    await expect(source.find('z')).rejects.toMatchObject({ code: 'unavailable' })
    expect(at(31)).toMatchObject({ lastError: 'network', expiresAt: start + 660 })
    expect(at(-1)).toMatchObject({ state: 'stale', ageSeconds: 0 })
    expect(at(60)).toMatchObject({ state: 'expired', keys: [], expiresAt: start + 60 })
  })

  it('is stale after 5 s and expired after 10 s at the earliest, whatever the options say', async () => {
    const hasty = { refreshSeconds: 1, maxStaleSeconds: 1 }
    const { clock, keySet } = await openKeySet([serve(DOCUMENT), hang], hasty)
    await keySet.ready()
    clock.advance(4.999)
    expect(keySet.health()).toMatchObject({ state: 'fresh', keys: ['a'] })
    clock.advance(5)
    expect(keySet.health()).toMatchObject({ state: 'stale', keys: ['a'] })
    clock.advance(0.001)
    expect(keySet.health().state).toBe('expired')
  })

  it('cannot be used to change the set', async () => {
    const { keySet } = await openReadyKeySet([serve(DOCUMENT)])
    const keys = keySet.health().keys as string[]
    keys.length = 0
    expect(keySet.health().keys).toEqual(['a'])
  })
})

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

describe('revalidation', () => {
  it('asks with the ETag, and a 304 makes the set fresh again', async () => {
    const tagged = serveTagged(DOCUMENT, '"1"', { 'cache-control': 'max-age=60' })
    const { server, clock, keySet, source } = await openReadyKeySet([tagged])
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
    const { server, clock, source } = await openReadyKeySet([tagged])
    clock.advance(60)
    expect(await source.find('a')).toMatchObject({ kid: 'a' })
    expect(server.requests[1]?.headers.has('if-none-match')).toBe(false)
  })

  it('asks for all of it where the set expired while a 304 was on its way', async () => {
    const { server, clock, source } = await openReadyKeySet([
      serveTagged(DOCUMENT, '"1"', { 'cache-control': 'max-age=60' }),
    ])
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
    const { server, clock, keySet, source } = await openReadyKeySet([
      serve(DOCUMENT, { 'cache-control': 'max-age=60' }),
    ])
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
