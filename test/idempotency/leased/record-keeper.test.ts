import { describe, expect, it } from 'vitest'
import type { Ending, Run } from '../../../src/idempotency/leased/idempotency-store.js'
import { type IdempotencyRecord, renew, settle } from '../../../src/idempotency/leased/record.js'
import {
  createRecordKeeper,
  KEY_ID_FORM,
  keyIdOf,
  type RecordView,
  type Resolution,
  type ResolvedRecord,
  type StoredRecord,
  sealedOwner,
} from '../../../src/idempotency/leased/record-keeper.js'

const NOW = 1000
const DAY_MS = 86_400_000
const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = { type: 'finished', result: Buffer.from('answer') }
const FORGOTTEN: Resolution = { type: 'forgotten', reason: 'rolled back' }
const RUN: Run = {
  recordId: 'k',
  owner: 'a',
  fence: 1_700_000_000_999_999,
  fingerprint: 'same',
  leaseMs: 100,
  retentionMs: 5000,
}
function recordAfter(ending?: Ending, run = RUN): IdempotencyRecord {
  const { record } = ending ? settle(undefined, { run, ending }, NOW) : renew(undefined, run, NOW)
  if (record === undefined) throw new Error('there is a record')
  return record
}

const UNREADABLE = { state: 'unreadable', minFence: 77, expiresAt: NOW + 60_000 } as const

/** The keeper of one record, and what it has written. */
function keeperOf(record: StoredRecord | undefined, now = NOW) {
  const written: ResolvedRecord[] = []
  const keeper = createRecordKeeper({
    read: async () => record && { record, now },
    async replace(_recordId, _snapshot, next) {
      written.push(next)
      return true
    },
  })
  return { ...keeper, written }
}

const viewOf = (record: StoredRecord, now?: number): Promise<RecordView | undefined> =>
  keeperOf(record, now).inspect('k')

const finished = (text: string, run = RUN): IdempotencyRecord =>
  recordAfter({ type: 'finished', result: Buffer.from(text) }, run)
const READABLE = '[200,[],0]\n'

describe('what an operator is shown', () => {
  it.each<[string, StoredRecord, number, Partial<RecordView>]>([
    ['running', recordAfter(), NOW, { leaseLeftMs: 100, expiresInMs: 5100 }],
    ['abandoned', recordAfter(), NOW + 100, { expiresInMs: 5000 }],
    ['abandoned', recordAfter({ type: 'abandoned' }), NOW, { expiresInMs: 5000 }],
    ['finished', finished(READABLE), NOW, { expiresInMs: 5000, resultBytes: 11 }],
    ['unreadable', finished('12345'), NOW, { expiresInMs: 5000, resultBytes: 5 }],
    ['not_stored', recordAfter({ type: 'not_stored' }), NOW, { expiresInMs: 5000 }],
    ['freed', recordAfter({ type: 'released' }), NOW, { expiresInMs: 100 }],
    [
      'freed',
      { ...recordAfter({ type: 'released' }), state: 'freed', reason: 'rolled back' },
      NOW,
      { expiresInMs: 100, reason: 'rolled back' },
    ],
  ])('of a record that is %s', async (state, record, now, rest) => {
    expect(await viewOf(record, now)).toStrictEqual({
      state,
      fence: RUN.fence,
      fingerprint: 'same',
      begunAt: 1_700_000_000,
      ...rest,
    })
  })

  it('of one that cannot be read is little', async () => {
    expect(await viewOf(UNREADABLE)).toStrictEqual({
      fence: 0,
      state: 'unreadable',
      expiresInMs: 60_000,
    })
    expect((await viewOf({ ...UNREADABLE, version: '2' }))?.recordVersion).toBe('2')
  })

  it('has no end where the record has none, and no begin without a fence', async () => {
    const view = await viewOf({
      ...recordAfter({ type: 'released' }),
      fence: 0,
      expiresAt: Number.POSITIVE_INFINITY,
    })
    expect(view).toStrictEqual({ fence: 0, state: 'freed', fingerprint: 'same' })
    expect(JSON.parse(JSON.stringify(view))).toEqual(view)
  })

  it('tells by which key a result is, or would be, encrypted', async () => {
    const header = (kid: unknown): string =>
      Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM', kid })).toString('base64url')
    const run = { ...RUN, owner: sealedOwner('june', 'a') }
    const sealed = `${header('july')}..iv.text.tag`
    expect((await viewOf(recordAfter(undefined, run)))?.keyId).toBe('june')
    for (const of of [run, RUN]) {
      expect(await viewOf(finished(sealed, of))).toMatchObject({ keyId: 'july', state: 'finished' })
    }
    expect((await viewOf(finished('{}..iv.text.tag', run)))?.keyId).toBe('june')
    const others = [header('not a key id'), header(['july']), header(undefined)]
    const texts = ['', 'plain', READABLE, ...others.map((each) => `${each}..iv.text.tag`)]
    for (const none of texts) {
      expect((await viewOf(finished(none)))?.keyId).toBeUndefined()
    }
    expect((await viewOf(finished(header('july'))))?.keyId).toBeUndefined()
  })
})

describe('what an operator can end', () => {
  async function resolved(record: StoredRecord, fence: number, as: Resolution) {
    const { resolve, written } = keeperOf(record)
    expect(await resolve('k', fence, as)).toBe(written.length > 0)
    return written[0]
  }

  it('of one that cannot be read is only that nothing has happened', async () => {
    expect(await resolved(UNREADABLE, 0, FREED)).toEqual({
      state: 'freed',
      owner: expect.any(String),
      fence: 77,
      fingerprint: '',
      retentionMs: DAY_MS,
      expiresAt: NOW + DAY_MS,
    })
    expect(await resolved(UNREADABLE, 77, FREED)).toBeUndefined()
    for (const as of [FINISHED, FORGOTTEN]) {
      expect(await resolved(UNREADABLE, 0, as)).toBeUndefined()
    }
    for (const as of [FREED, FINISHED, FORGOTTEN]) {
      expect(await resolved({ ...UNREADABLE, version: '2' }, 0, as)).toBeUndefined()
    }
  })

  it.each([DAY_MS * 3, Number.POSITIVE_INFINITY])('lasts at least a day: %d', async (expiresAt) => {
    const record = { ...recordAfter({ type: 'abandoned' }), expiresAt }
    const freed = await resolved(record, RUN.fence, FREED)
    expect(freed?.expiresAt).toBe(Number.isFinite(expiresAt) ? expiresAt : NOW + DAY_MS)
    const finished = await resolved(record, RUN.fence, FINISHED)
    expect(finished?.expiresAt).toBe(NOW + DAY_MS)
  })

  it('belongs to somebody else from then on, and keeps what it was', async () => {
    const { fence, fingerprint, retentionMs } = RUN
    const forgotten = await resolved(recordAfter({ type: 'not_stored' }), fence, FORGOTTEN)
    const kept = { fence, fingerprint, retentionMs, state: 'freed', reason: 'rolled back' }
    expect(forgotten).toMatchObject(kept)
    expect(forgotten?.owner).not.toBe(RUN.owner)
  })

  it.each(['', 'x'.repeat(257)])('has no reason of another length (%#)', async (reason) => {
    const { resolve, written } = keeperOf(recordAfter({ type: 'abandoned' }))
    const as: Resolution = { type: 'freed', reason }
    await expect(resolve('k', RUN.fence, as)).rejects.toThrow('as.reason must be')
    expect(written).toEqual([])
  })
})

describe('the owner of a run whose result will be encrypted', () => {
  it.each(['2024-06', 'a', 'A.b_c-9', 'x'.repeat(64)])('tells its key id, %s', (keyId) => {
    expect(KEY_ID_FORM.test(keyId)).toBe(true)
    for (const owner of ['6f2c', '', 'jwe:other:6f2c', 'a\nb']) {
      expect(keyIdOf(sealedOwner(keyId, owner))).toBe(keyId)
    }
  })
})

it.each(['', '6f2c', 'jwe::6f2c', 'JWE:key:6f2c', ' jwe:key:6f2c', `jwe:${'x'.repeat(65)}:6f2c`])(
  'any other owner, such as %j, tells none',
  (owner) => expect(keyIdOf(owner)).toBeUndefined(),
)
