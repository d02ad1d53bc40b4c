import { AsyncLocalStorage } from 'node:async_hooks'
import type { RequestHandler } from 'express'
import { type KeySet, type KeySetEvent, remoteKeySet, serviceAuth } from 'express-service-auth'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import {
  type Behaviour,
  hangUp,
  type KeySetServer,
  serve,
} from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { type ManualClock, manualClock } from '../../support/manual-clock.js'
import { onEvent } from '../../support/observe/channel-events.js'
import { behind, type Receiver, startReceiver } from '../../support/receiver/receiver.js'
import { until } from '../../support/until.js'
import { openKeySetServer } from './open-key-set.js'

const key = makeSigningKey('d-1')
const good = serve({ keys: [key.jwk] })
const storage = new AsyncLocalStorage<string>()

/** In which stores sets were fetched. */
let fetches: (string | undefined)[] = []

beforeEach(() => {
  fetches = []
})

interface Stage {
  readonly server: KeySetServer
  readonly clock: ManualClock
  readonly keySet: KeySet
  readonly receiver: Receiver
  /** What its key set tells, and in which store. */
  readonly events: readonly [KeySetEvent['type'], string | undefined][]
}

/** A receiver whose requests each run in a store of their own, on a key set that was made in another. */
async function stage(...behaviours: Behaviour[]): Promise<Stage> {
  const server = await openKeySetServer(...behaviours)
  const clock = manualClock()
  const events: [KeySetEvent['type'], string | undefined][] = []
  onEvent('keys', ({ type, jwksUri }) => {
    if (jwksUri === server.url) events.push([type, storage.getStore()])
  })
  const recording: typeof fetch = (input, init) => {
    fetches.push(storage.getStore())
    return fetch(input, init)
  }
  const keySet = storage.run('owner', () =>
    remoteKeySet({ jwksUri: server.url, fetch: recording, clock }),
  )
  const auth = serviceAuth({ ...POLICY, keySet, clock })
  const inStore: RequestHandler = (request, response, next) =>
    storage.run('request', () => auth(request, response, next))
  const receiver = await startReceiver(behind(inStore))
  onTestFinished(() => keySet.close())
  return { server, clock, keySet, receiver, events }
}

it('the fetch that a request causes, its retry and their events are not in its context', async () => {
  const { clock, receiver, events } = await stage(hangUp, good)
  expect((await receiver.call(tokenFrom(key, { now: clock() }))).status).toBe(200)
  expect(fetches).toEqual(['owner', 'owner'])
  expect(events).toEqual([['fetched', 'owner']])
})

it('nor are the refreshes that a timer starts later', async () => {
  const { clock, receiver, keySet, events } = await stage(hangUp, hangUp, good)
  expect((await receiver.call(tokenFrom(key, { now: clock() }))).status).toBe(503)
  clock.advance(1)
  await until('the timer has refreshed', async () => keySet.health().state === 'fresh')
  expect(fetches).toEqual(['owner', 'owner', 'owner'])
  expect(events).toEqual([
    ['failed', 'owner'],
    ['fetched', 'owner'],
  ])
})

it('nor is what requests cause by an unknown kid, a due refresh or a look at an expired set', async () => {
  const { clock, receiver, server, keySet, events } = await stage(good)
  const token = (): string => tokenFrom(key, { now: clock() })
  await receiver.call(token())
  for (const [kid, status] of [
    ['x', 401],
    ['y', 401],
    ['z', 503],
  ] as const) {
    expect((await receiver.call(withKid(token(), kid))).status).toBe(status)
  }
  clock.advance(300)
  expect((await receiver.call(token())).status).toBe(200)
  await until('the due refresh is over', async () => keySet.health().state === 'fresh')
  server.behave(hangUp)
  clock.advance(3600)
  expect((await receiver.call(token())).status).toBe(503)
  expect(new Set(fetches)).toEqual(new Set(['owner']))
  const types = new Set(events.map(([type]) => type))
  expect(types).toEqual(new Set(['fetched', 'budget_exhausted', 'expired', 'failed']))
  expect(new Set(events.map(([, store]) => store))).toEqual(new Set(['owner']))
})

it('nor is the fetch of ready() in the context of whoever calls it', async () => {
  const { keySet } = await stage(good)
  await storage.run('request', () => keySet.ready())
  expect(fetches).toEqual(['owner'])
})

it('a request keeps its own context while it waits for a fetch', async () => {
  const server = await openKeySetServer(good)
  const clock = manualClock()
  const auth = serviceAuth({ ...POLICY, jwksUri: server.url, clock })
  const seen: unknown[] = []
  const receiver = await startReceiver(
    behind((request, response, next) => {
      storage.run('request', () => {
        auth(request, response, (error) => {
          seen.push(storage.getStore())
          next(error)
        })
      })
    }),
  )
  onTestFinished(() => auth.close())
  await receiver.call(tokenFrom(key, { now: clock() }))
  expect(seen).toEqual(['request'])
})
