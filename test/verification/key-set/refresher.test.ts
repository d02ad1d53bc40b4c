import { expect, it, onTestFinished } from 'vitest'
import type { KeySetEvent } from '../../../src/base/decision/key-set-event.js'
import { createFetcher, type Fetcher } from '../../../src/verification/key-set/refresher.js'
import {
  type Behaviour,
  hangUp,
  type KeySetServer,
  serve,
} from '../../support/issuer/key-set-server.js'
import { openKeySetServer } from '../../support/issuer/open-key-set.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { collectKeySetEvents } from '../../support/observe/key-set-events.js'

const good = shapeOfKey('good', 2048)
const answer = serve({ keys: [good] })

async function fetcherOf(
  ...behaviours: Behaviour[]
): Promise<{ server: KeySetServer; fetcher: Fetcher; events: () => readonly KeySetEvent[] }> {
  const eventsOf = collectKeySetEvents()
  const server = await openKeySetServer(...behaviours)
  const options = { jwksUri: server.url, fetch: globalThis.fetch, timeoutMs: 5000, clock: Date.now }
  const fetcher = createFetcher(options)
  onTestFinished(() => fetcher.close())
  return { server, fetcher, events: () => eventsOf(server.url) }
}

it('tries twice, not more, and tells why the second one failed', async () => {
  const { server, fetcher } = await fetcherOf(hangUp, serve({ keys: [] }), answer)
  await expect(fetcher.fetch(undefined)).rejects.toMatchObject({ code: 'no_usable_key' })
  expect(server.requests).toHaveLength(2)
})

it('waits a little between the tries, never the same', async () => {
  const { fetcher } = await fetcherOf(hangUp)
  const waits: number[] = []
  for (let round = 0; round < 5; round++) {
    const startedAt = performance.now()
    await fetcher.fetch(undefined).catch(() => {})
    waits.push(performance.now() - startedAt)
  }
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(49)
  expect(new Set(waits.map(Math.round)).size).toBeGreaterThan(1)
})

it('tells of a skipped key once for as long as it stays so, not per fetch', async () => {
  const small = shapeOfKey('small', 1024)
  const nameless = { ...good, kid: '' }
  const bad = serve({ keys: [good, small, nameless, { ...good, kid: null }] })
  const { server, fetcher, events } = await fetcherOf(bad)
  const skipped = { type: 'key_skipped', jwksUri: server.url }
  const smallSkipped = { ...skipped, reason: 'modulus_size', keyId: 'small' }
  const namelessSkipped = { ...skipped, reason: 'key_id_invalid' }
  for (let round = 0; round < 3; round++) await fetcher.fetch(undefined)
  expect(events()).toEqual([smallSkipped, namelessSkipped])
})

it('tells of it again when its reason changes, or it comes back', async () => {
  const small = shapeOfKey('odd', 1024)
  const forEncryption = { ...shapeOfKey('odd', 2048), use: 'enc' }
  const sets = [[good, small], [good, forEncryption], [good], [good, forEncryption]]
  const { fetcher, events } = await fetcherOf(...sets.map((keys) => serve({ keys })))
  for (const _ of sets) await fetcher.fetch(undefined)
  expect(events().map((event) => ('reason' in event ? event.reason : event.type))).toEqual([
    'modulus_size',
    'not_for_signatures',
    'not_for_signatures',
  ])
})

it('gives up between the tries when it is closed', async () => {
  let tries = 0
  const fetch = (): Promise<Response> => {
    tries += 1
    // After all that follows from the rejection at once, and before any timer.
    setImmediate(() => fetcher.close())
    return Promise.reject(new Error('refused'))
  }
  const jwksUri = 'https://core.example/'
  const fetcher = createFetcher({ jwksUri, fetch, timeoutMs: 5000, clock: Date.now })
  await expect(fetcher.fetch(undefined)).rejects.toMatchObject({ code: 'closed' })
  expect(tries).toBe(1)
})
