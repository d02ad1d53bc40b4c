import { randomUUID } from 'node:crypto'
import type { Ending, Resolution, Store } from 'express-service-auth'
import { memoryStore } from 'express-service-auth'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { encodeResult } from '../../../../src/idempotency/buffered-response/stored-result.js'
import { begin, openStore, requestFor, retryOf, sharedRedis } from '../kit.js'

const server = await sharedRedis()

describe('what a caller asks', () => {
  it('may have a key, an owner and a fingerprint of any text', async () => {
    const { store } = openStore(server)
    const texts = ['', '|', 'a\n\0', 'žluť', '😀', 'half \ud83d', '\ude00 of one']
    for (const owner of texts) {
      for (const fingerprint of texts) {
        const recordId = `k\r\n|é{x}${randomUUID()}`
        const request = requestFor({ recordId, owner, fingerprint })
        const run = await begin(store, request)
        expect(await store.reserve(request)).toEqual({ outcome: 'reserved', fence: run.fence })
        expect(await store.renew(run)).toBe(true)
        const other = retryOf(request, { fingerprint: `${fingerprint}!` })
        expect(await store.reserve(other)).toEqual({ outcome: 'mismatch' })
        expect(await store.settle(run, { type: 'finished', result: Buffer.from('x') })).toBe(true)
        const found = await store.reserve(retryOf(request))
        expect(found).toEqual({ outcome: 'finished', result: Buffer.from('x') })
      }
    }
  })

  it('is refused where a record could not hold it, and nothing is lost', async () => {
    const { store } = openStore(server)
    const request = requestFor()
    const run = await begin(store, request)
    for (const retentionMs of [2 ** 53, 1e21, Number.NaN, Number.POSITIVE_INFINITY]) {
      const fault = /fence or retention is out of range/
      await expect(store.reserve({ ...request, retentionMs })).rejects.toThrow(fault)
      await expect(store.renew({ ...run, retentionMs })).rejects.toThrow(fault)
      await expect(store.settle({ ...run, retentionMs }, { type: 'released' })).rejects.toThrow(
        fault,
      )
    }
    expect(await store.renew(run)).toBe(true)
  })
})

/** What may be asked of a store about one of few keys, by one of few owners. */
type Command =
  | { do: 'reserve'; key: number; owner: number; fingerprint: number; rerun: boolean }
  | { do: 'renew'; key: number; owner: number }
  | { do: 'settle'; key: number; owner: number; ending: Ending['type'] }
  | { do: 'inspect'; key: number }
  | { do: 'resolve'; key: number; owner: number; as: Resolution['type']; isReadable: boolean }
  | { do: 'expire'; key: number }
  | { do: 'consume'; id: number }

const key = fc.nat(1)
const owner = fc.nat(2)
const commands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      key,
      owner,
      fingerprint: fc.nat(1),
      rerun: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('renew' as const), key, owner }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      key,
      owner,
      ending: fc.constantFrom<Ending['type'][]>('finished', 'not_stored', 'abandoned', 'released'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('inspect' as const), key }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('resolve' as const),
      key,
      owner,
      as: fc.constantFrom<Resolution['type'][]>('freed', 'finished'),
      isReadable: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), key }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('consume' as const), id: fc.nat(2) }) },
)

/** Some can be read, some cannot. */
const resultOf = (text: string, isReadable: boolean): Buffer =>
  isReadable
    ? encodeResult({ status: 201, headers: [], body: Buffer.from(text) })
    : Buffer.from(text)

/** No lease ends by itself while a sequence is played. */
const LEASE_MS = 60_000

/** Plays commands on one store. Fences and times are told by their order, not by their values. */
function player(store: Store, expire: (key: string) => Promise<void>) {
  const session = randomUUID()
  const fences = new Map<string, number>()
  const fingerprints = new Map<string, number>()
  const granted: number[] = []
  const runOf = (
    key: number,
    owner: number,
    fingerprint = fingerprints.get(`${key}:${owner}`) ?? 0,
  ) => ({
    recordId: `${session}:${key}`,
    owner: `owner ${owner}`,
    fingerprint: `fingerprint ${fingerprint}`,
    leaseMs: LEASE_MS,
    retentionMs: LEASE_MS,
    rerunAbandoned: false,
    fence: fences.get(`${key}:${owner}`) ?? 1,
  })

  return async (command: Command): Promise<unknown> => {
    switch (command.do) {
      case 'consume':
        return store.consume(`${session}:${command.id}`, LEASE_MS)
      case 'expire':
        await expire(runOf(command.key, 0).recordId)
        return 'expired'
      case 'reserve': {
        const { key, owner, fingerprint, rerun } = command
        const { fence: _, ...request } = runOf(key, owner, fingerprint)
        const found = await store.reserve({ ...request, rerunAbandoned: rerun })
        if (found.outcome === 'finished') return Buffer.from(found.result).toString()
        if (found.outcome === 'running') return `running ${found.leaseLeftMs > 0}`
        if (found.outcome !== 'reserved') return found.outcome
        const isNew = fences.get(`${key}:${owner}`) !== found.fence
        if (isNew) granted.push(found.fence)
        fences.set(`${key}:${owner}`, found.fence)
        fingerprints.set(`${key}:${owner}`, fingerprint)
        const isGreatest = granted.every((fence) => fence <= found.fence)
        return `reserved ${isNew ? `again, the greatest: ${isGreatest}` : 'again'}`
      }
      case 'inspect': {
        const view = await store.inspect(runOf(command.key, 0).recordId)
        const { fence, begunAt, leaseLeftMs, expiresInMs, ...rest } = view ?? {}
        return { ...rest, isLeased: leaseLeftMs !== undefined, isLatest: fence === granted.at(-1) }
      }
      case 'resolve': {
        const { as: type, isReadable } = command
        const { recordId, fence } = runOf(command.key, command.owner)
        const result = resultOf('by an operator', isReadable)
        return store.resolve(recordId, fence, type === 'finished' ? { type, result } : { type })
      }
      case 'renew':
        return store.renew(runOf(command.key, command.owner))
      case 'settle': {
        const { ending: type } = command
        const run = runOf(command.key, command.owner)
        const result = resultOf(`result of ${run.owner}`, command.owner > 0)
        return store.settle(run, type === 'finished' ? { type, result } : { type })
      }
    }
  }
}

it('the record on Redis answers every sequence of commands as the pure one does', async () => {
  const { store } = openStore(server, { timeoutMs: 5000 })
  const model = memoryStore()
  onTestFinished(() => model.close())
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 1, maxLength: 30 }), async (sequence) => {
      const forgotten = new Map<string, number>()
      const onRedis = player(store, async (name) => {
        await server.command('DEL', `esa:k:${name}`)
      })
      const inMemory = player(forgetful(model, forgotten), async (name) => {
        forgotten.set(name, (forgotten.get(name) ?? 0) + 1)
      })
      for (const command of sequence)
        expect(await onRedis(command)).toEqual(await inMemory(command))
    }),
    { numRuns: 300 },
  )
}, 60_000)

/** A store of which keys can be forgotten: from then on it knows them by another name. */
function forgetful(store: Store, forgotten: ReadonlyMap<string, number>): Store {
  const renamed = <T extends { recordId: string }>(asked: T): T => ({
    ...asked,
    recordId: `${asked.recordId}:${forgotten.get(asked.recordId) ?? 0}`,
  })
  return {
    ...store,
    reserve: (request) => store.reserve(renamed(request)),
    renew: (run) => store.renew(renamed(run)),
    settle: (run, ending) => store.settle(renamed(run), ending),
    inspect: (recordId) => store.inspect(renamed({ recordId }).recordId),
    resolve: (recordId, fence, as) => store.resolve(renamed({ recordId }).recordId, fence, as),
  }
}
