import { randomBytes } from 'node:crypto'
import {
  type EncryptedStoreOptions,
  encryptedStore,
  type Resolution,
  type Store,
} from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { encodeResult } from '../../../src/idempotency/buffered-response/stored-result.js'
import { begin, finish, found, KEYS, OPTIONS, openRedisStore, requestFor } from './encrypted-kit.js'

const resultOf = (text: string): Buffer =>
  encodeResult({ status: 201, headers: [], body: Buffer.from(text) })
const RUNS = resultOf('of the run')
const OPERATORS = resultOf('of the operator')
const DONE: Resolution = { type: 'finished', result: OPERATORS }
const FREED: Resolution = { type: 'freed' }

const inner = await openRedisStore()

describe('what an operator sees and does, encrypted', () => {
  const make = (changes: Partial<EncryptedStoreOptions> = {}): Store =>
    encryptedStore(inner, { ...OPTIONS, ...changes })
  const other = () => make({ keys: { '2026-02': KEYS['2026-02'] }, current: '2026-02' })

  it('is the key of each record, with and without the keys', async () => {
    const store = make()
    const request = requestFor()
    const run = await begin(store, request)
    const expectSeen = async (state: string, states = [state, state, state]) => {
      const views = await Promise.all([store, other(), inner].map((by) => by.inspect(run.recordId)))
      for (const [index, view] of views.entries()) {
        expect(view).toMatchObject({ state: states[index], keyId: '2026-01', fence: run.fence })
      }
    }
    await expectSeen('running')
    await store.settle(run, { type: 'abandoned' })
    await expectSeen('abandoned')
    await store.settle(run, { type: 'finished', result: RUNS })
    await expectSeen('', ['finished', 'unreadable', 'finished'])
    expect(await inner.resolve(run.recordId, run.fence, { type: 'finished', result: RUNS })).toBe(
      false,
    )
  })

  it('is the size of a result that opens, and never the result', async () => {
    const request = await finish(make(), RUNS)
    const view = await make().inspect(request.recordId)
    expect(view?.resultBytes).toBe(RUNS.byteLength)
    expect(JSON.stringify(view)).not.toContain('of the run')
    const sealed = await other().inspect(request.recordId)
    expect(sealed?.resultBytes).toBeGreaterThan(RUNS.byteLength * 1.3)
  })

  it('is that a plain result can be read where that is allowed', async () => {
    const { recordId } = await finish(inner, RUNS)
    expect((await make().inspect(recordId))?.state).toBe('unreadable')
    expect((await make({ readUnencrypted: true }).inspect(recordId))?.state).toBe('finished')
    expect(await make().inspect(recordId)).not.toHaveProperty('keyId')
  })

  it('is an answer that is kept encrypted by the current key', async () => {
    const request = requestFor()
    const run = await begin(make(), request)
    await make().settle(run, { type: 'abandoned' })
    expect(await make({ current: '2026-02' }).resolve(run.recordId, run.fence, DONE)).toBe(true)
    expect(await found(make(), request)).toBe(OPERATORS.toString())
    expect(await found(inner, request)).toMatch(/^eyJ[\w-]+\.\.[\w-]{16}\.[\w-]+\.[\w-]{22}$/)
    const view = await make().inspect(run.recordId)
    expect(view).toMatchObject({ state: 'finished', keyId: '2026-02', fence: run.fence })
  })

  it('is an end for a result that its key does not open, and for no other', async () => {
    const request = await finish(make(), RUNS)
    const { fence = 0 } = (await make().inspect(request.recordId)) ?? {}
    for (const as of [DONE, FREED]) {
      for (const store of [make(), other()]) {
        expect(await store.resolve(request.recordId, fence, as)).toBe(false)
      }
    }
    expect(await found(make(), request)).toBe(RUNS.toString())
    const wrongKey = make({ keys: { ...KEYS, '2026-01': randomBytes(32) }, current: '2026-02' })
    expect(await wrongKey.resolve(request.recordId, fence, FREED)).toBe(false)
    expect(await wrongKey.resolve(request.recordId, fence + 1, DONE)).toBe(false)
    expect(await wrongKey.resolve(request.recordId, fence, DONE)).toBe(true)
    expect(await found(make(), request)).toBe(OPERATORS.toString())
  })
})

it('a run that comes back while its answer is encrypted keeps its own', async () => {
  const request = requestFor()
  const comesBack: { run?: () => Promise<unknown> } = {}
  const slow: Store = {
    ...inner,
    async resolve(record, fence, as) {
      await comesBack.run?.()
      return inner.resolve(record, fence, as)
    },
  }
  const store = encryptedStore(slow, OPTIONS)
  const run = await begin(store, request)
  await store.settle(run, { type: 'abandoned' })
  comesBack.run = () => store.settle(run, { type: 'finished', result: RUNS })
  expect(await store.resolve(run.recordId, run.fence, DONE)).toBe(false)
  expect(await found(store, request)).toBe(RUNS.toString())
})
