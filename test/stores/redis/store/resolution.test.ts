import type { Resolution, Store } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { encodeResult } from '../../../../src/idempotency/buffered-response/stored-result.js'
import { NotConfirmed } from '../../../../src/stores/redis/connection/redis-connection.js'
import type { TcpProxy } from '../../../support/network/tcp-proxy.js'
import { until } from '../../../support/until.js'
import { begin, openStore, proxyOf, requestFor, retryOf, sharedRedis } from '../kit.js'

const DAY_MS = 86_400_000
const RESULT = encodeResult({ status: 201, headers: [], body: Buffer.from('answer') })
const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = { type: 'finished', result: RESULT }

const server = await sharedRedis()

const nameOf = ({ recordId }: { recordId: string }): string => `esa:k:${recordId}`
const ttlOf = async (request: { recordId: string }): Promise<number> =>
  Number(await server.command('PTTL', nameOf(request)))
const textOf = (request: { recordId: string }): Promise<string> =>
  server.command('GET', nameOf(request))

async function abandonedIn(store: Store) {
  const request = requestFor()
  const run = await begin(store, request)
  await store.settle(run, { type: 'abandoned' })
  return { request, run }
}

/** Nobody may run, renew or settle it. */
async function expectUnreadable(store: Store, request: ReturnType<typeof requestFor>) {
  const run = { ...request, fence: 1 }
  const { outcome } = await store.reserve({ ...request, rerunAbandoned: true })
  expect(outcome).toMatch(/^(unreadable|mismatch)$/)
  expect(await store.renew(run)).toBe(false)
  expect(await store.settle(run, { type: 'finished', result: RESULT })).toBe(false)
  expect(await store.settle(run, { type: 'released' })).toBe(false)
}

async function expectFreed(store: Store, request: ReturnType<typeof requestFor>): Promise<void> {
  const microseconds = Date.now() * 1000
  expect(await store.resolve(request.recordId, 0, FINISHED)).toBe(false)
  expect(await store.resolve(request.recordId, 1, FREED)).toBe(false)
  expect(await store.resolve(request.recordId, 0, FREED)).toBe(true)
  const view = await store.inspect(request.recordId)
  expect(view?.state).toBe('freed')
  expect(view?.fence).toBeGreaterThan(microseconds - 60e6)
  expect(await ttlOf(request)).toBeGreaterThan(DAY_MS - 60_000)
  expect(await store.renew({ ...request, fence: view?.fence ?? 0 })).toBe(false)
  expect(await store.resolve(request.recordId, 0, FREED)).toBe(false)
  const next = await begin(store, retryOf(request))
  expect(next.fence).toBeGreaterThan(view?.fence ?? 0)
}

describe('a record that cannot be read', () => {
  it.each([
    '',
    'garbage',
    '1|x|1|1000|1|1|of',
    '1|r|-1|1000|1|1|of',
    '1|r|1|1000|1|1|o',
    '1|r|1|1000|99|1|of',
    '1|r|99999999999999999999|1000|1|1|of',
    '1|r|1|9007199254740992|1|1|of',
    '1|r|1|1000|1|99999999999999999999999999999999|of',
    `1|r|${'9'.repeat(300)}|1000|1|1|of`,
    '01|r|1|1000|1|1|of',
    '{"state":"running"}',
  ])('such as %j can be freed, and nothing else', async (value) => {
    const { store } = openStore(server)
    const request = requestFor()
    await server.command('SET', nameOf(request), value, 'PX', '60000')
    await expectUnreadable(store, request)
    expect(await textOf(request)).toBe(value)
    const { expiresInMs, ...view } = (await store.inspect(request.recordId)) ?? {}
    expect(view).toEqual({ fence: 0, state: 'unreadable' })
    expect(expiresInMs).toBeLessThanOrEqual(60_000)
    await expectFreed(store, request)
  })

  it.each([['RPUSH'], ['SADD']])('such as one of another type (%s)', async (command) => {
    const { store } = openStore(server)
    const request = requestFor()
    await server.command(command, nameOf(request), 'x')
    await expectUnreadable(store, request)
    expect(await store.inspect(request.recordId)).toEqual({ fence: 0, state: 'unreadable' })
    await expectFreed(store, request)
  })

  it('because another version has written it is left to that one', async () => {
    const { store } = openStore(server)
    for (const [value, recordVersion] of [
      ['2|r|1|1000|1|1|of', '2'],
      ['17|anything', '17'],
    ] as const) {
      const request = requestFor()
      await server.command('SET', nameOf(request), value)
      await expectUnreadable(store, request)
      const view = { fence: 0, state: 'unreadable', recordVersion }
      expect(await store.inspect(request.recordId)).toEqual(view)
      for (const as of [FREED, FINISHED]) {
        expect(await store.resolve(request.recordId, 0, as)).toBe(false)
      }
      expect(await textOf(request)).toBe(value)
    }
  })
})

describe('a record that somebody keeps forever', () => {
  const textAt = (fence: number): string => `1|r|${fence}|60000|5|11|ownerfingerprint`
  const agoMs = (ms: number): number => (Date.now() - ms) * 1000

  it('while it runs may be alive: it is left alone', async () => {
    const { store } = openStore(server)
    const request = requestFor()
    const run = await begin(store, request)
    await server.command('PERSIST', nameOf(request))
    const view = await store.inspect(request.recordId)
    expect(view).toMatchObject({ state: 'running', fence: run.fence })
    expect(view?.leaseLeftMs).toBeGreaterThan(DAY_MS - 60_000)
    const retry = retryOf(request, { rerunAbandoned: true })
    expect(await store.reserve(retry)).toEqual({ outcome: 'unreadable' })
    for (const fence of [0, run.fence]) {
      for (const as of [FREED, FINISHED]) {
        expect(await store.resolve(request.recordId, fence, as)).toBe(false)
      }
    }
    expect(await store.settle(run, { type: 'finished', result: RESULT })).toBe(true)
  })

  it.each([FREED, FINISHED])('is abandoned once no run can be so old ($type)', async (as) => {
    const { store } = openStore(server)
    const request = requestFor()
    const [younger, older] = [agoMs(DAY_MS - 60_000), agoMs(DAY_MS + 1000)]
    await server.command('SET', nameOf(request), textAt(younger))
    expect((await store.inspect(request.recordId))?.state).toBe('running')
    expect(await store.resolve(request.recordId, younger, as)).toBe(false)
    await server.command('SET', nameOf(request), textAt(older))
    expect((await store.inspect(request.recordId))?.state).toBe('abandoned')
    expect(await store.resolve(request.recordId, older, as)).toBe(true)
    expect(await ttlOf(request)).toBeGreaterThan(DAY_MS - 60_000)
  })
})

describe('a reply that is lost on the wire', () => {
  /** The reply of `RESOLVE` that it has written. */
  const DONE = ':1\r\n'

  async function proxied(): Promise<{ proxy: TcpProxy; store: Store }> {
    const proxy = await proxyOf(server)
    return { proxy, store: openStore(proxy, { timeoutMs: 2000 }).store }
  }

  it.each([FREED, FINISHED])('is recognised as one’s own ($type)', async (as) => {
    const { proxy, store } = await proxied()
    const { request, run } = await abandonedIn(store)
    const opened = proxy.opened
    proxy.loseReply(DONE)
    expect(await store.resolve(request.recordId, run.fence, as)).toBe(true)
    expect(proxy.opened).toBe(opened + 1)
    expect((await store.inspect(request.recordId))?.state).toBe(as.type)
    expect(await store.resolve(request.recordId, run.fence, as)).toBe(false)
  })

  it('is never taken for a refusal when somebody has taken the key meanwhile', async () => {
    const { proxy, store } = await proxied()
    const { store: other } = openStore(server, { timeoutMs: 2000 })
    const outcomes = new Set<unknown>()
    // Who takes the key is mostly there before the connection is back.
    for (let round = 0; round < 20; round++) {
      const { request, run } = await abandonedIn(store)
      proxy.loseReply(DONE)
      const asked = store
        .resolve(request.recordId, run.fence, FREED)
        .catch((error: NotConfirmed) => (error.mayHaveRun ? 'not known' : error))
      while ((await other.reserve(retryOf(request))).outcome !== 'reserved');
      outcomes.add(await asked)
    }
    expect(outcomes).toContain('not known')
    outcomes.delete(true)
    expect([...outcomes]).toEqual(['not known'])
  })

  it('of a question means that nothing was written', async () => {
    const { proxy, store } = await proxied()
    const { request, run } = await abandonedIn(store)
    proxy.hold()
    const outcome = await store.resolve(request.recordId, run.fence, FREED).catch((error) => error)
    proxy.release()
    expect(outcome).toBeInstanceOf(NotConfirmed)
    expect(outcome).toMatchObject({ mayHaveRun: false })
    expect((await store.inspect(request.recordId))?.state).toBe('abandoned')
  })
})

describe('the mark of a key that was freed', () => {
  async function freedIn(store: Store) {
    const { request, run } = await abandonedIn(store)
    expect(await store.resolve(request.recordId, run.fence, FREED)).toBe(true)
    return { request, run }
  }

  it('outlives a reservation that was taken back', async () => {
    const { store } = openStore(server)
    const { request, run } = await freedIn(store)
    server.pause()
    const reserving = store.reserve(retryOf(request))
    await expect(reserving)
      .rejects.toThrow('Redis')
      .finally(() => server.resume())
    await until('it is taken back', async () => {
      const view = await store.inspect(request.recordId).catch(() => undefined)
      return view?.state === 'freed' && view.fence > run.fence
    })
    expect(await ttlOf(request)).toBeGreaterThan(DAY_MS - 60_000)
  })
})
