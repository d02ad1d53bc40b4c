import { describe, expect, it } from 'vitest'
import type { Ending, Run } from '../../../src/idempotency/leased/idempotency-store.js'
import {
  type IdempotencyRecord,
  renew,
  reserve,
  settle,
} from '../../../src/idempotency/leased/record.js'
import {
  type InspectedRecord,
  KEY_ID_FORM,
  keyIdOf,
  type RecordView,
  type Resolution,
  resolve,
  sealedOwner,
  viewOf,
} from '../../../src/idempotency/leased/record-keeper.js'

const NOW = 1000
const DAY_MS = 86_400_000
const RUN: Run = {
  recordId: 'k',
  owner: 'a',
  fence: 1_700_000_000_999_999,
  fingerprint: 'same',
  leaseMs: 100,
  retentionMs: 5000,
}
const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = { type: 'finished', result: Buffer.from('answer') }
const FORGOTTEN: Resolution = { type: 'forgotten', reason: 'rolled back' }

function recordAfter(ending?: Ending, run = RUN): IdempotencyRecord {
  const { record } = ending ? settle(undefined, { run, ending }, NOW) : renew(undefined, run, NOW)
  if (record === undefined) throw new Error('there is a record')
  return record
}

const found = (
  record: InspectedRecord['record'],
  { now = NOW, isResultReadable = true } = {},
): InspectedRecord => ({ record, now, isResultReadable })

const UNREADABLE = { state: 'unreadable', minFence: 77, expiresAt: NOW + 60_000 } as const

const resolveAs = (finding: InspectedRecord, as: Resolution, fence = RUN.fence) =>
  resolve(finding, { fence, as, owner: 'operator' })

describe('what an operator is shown', () => {
  it.each<[string, InspectedRecord, Partial<RecordView>]>([
    ['running', found(recordAfter()), { leaseLeftMs: 100, expiresInMs: 5100 }],
    ['abandoned', found(recordAfter(), { now: NOW + 100 }), { expiresInMs: 5000 }],
    ['abandoned', found(recordAfter({ type: 'abandoned' })), { expiresInMs: 5000 }],
    [
      'finished',
      found(recordAfter({ type: 'finished', result: Buffer.from('12345') })),
      { expiresInMs: 5000, resultBytes: 5 },
    ],
    [
      'unreadable',
      found(recordAfter({ type: 'finished', result: Buffer.from('12345') }), {
        isResultReadable: false,
      }),
      { expiresInMs: 5000, resultBytes: 5 },
    ],
    ['not_stored', found(recordAfter({ type: 'not_stored' })), { expiresInMs: 5000 }],
    ['freed', found(recordAfter({ type: 'released' })), { expiresInMs: 100 }],
  ])('of a record that is %s', (state, finding, rest) => {
    expect(viewOf(finding)).toStrictEqual({
      state,
      fence: RUN.fence,
      fingerprint: 'same',
      begunAt: 1_700_000_000,
      ...rest,
    })
  })

  it('of one that cannot be read is little', () => {
    expect(viewOf(found(UNREADABLE))).toStrictEqual({
      fence: 0,
      state: 'unreadable',
      expiresInMs: 60_000,
    })
    expect(viewOf(found({ ...UNREADABLE, version: '2' })).recordVersion).toBe('2')
  })

  it('has no end where the record has none, and no begin without a fence', () => {
    const view = viewOf(
      found({
        ...recordAfter({ type: 'released' }),
        fence: 0,
        expiresAt: Number.POSITIVE_INFINITY,
      }),
    )
    expect(view).toStrictEqual({ fence: 0, state: 'freed', fingerprint: 'same' })
    expect(JSON.parse(JSON.stringify(view))).toEqual(view)
  })

  it('tells by which key a result is, or would be, encrypted', () => {
    const header = (kid: string): string =>
      Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM', kid })).toString('base64url')
    const run = { ...RUN, owner: sealedOwner('june', 'a') }
    const keyId = (text: string, of = run): string | undefined =>
      viewOf(found(recordAfter({ type: 'finished', result: Buffer.from(text) }, of))).keyId
    expect(viewOf(found(recordAfter(undefined, run))).keyId).toBe('june')
    expect(keyId(`${header('july')}..iv.text.tag`)).toBe('july')
    expect(keyId(`${header('july')}..iv.text.tag`, RUN)).toBe('july')
    expect(keyId('{}..iv.text.tag')).toBe('june')
    for (const none of ['', 'plain', '[201,[],0]\n', `${header('not a key id')}..iv.text.tag`]) {
      expect(keyId(none, RUN)).toBeUndefined()
    }
  })
})

describe('what an operator can end', () => {
  const abandoned = recordAfter({ type: 'abandoned' })
  const damaged = found(recordAfter({ type: 'finished', result: Buffer.from('x') }), {
    isResultReadable: false,
  })

  const late = { now: NOW + 100 }
  it.each<[string, InspectedRecord, ...Resolution[]]>([
    ['is running', found(recordAfter())],
    ['is abandoned', found(abandoned), FREED, FINISHED],
    ['has lost its lease', found(recordAfter(), late), FREED, FINISHED],
    ['has a result', found(recordAfter(FINISHED as Ending)), FORGOTTEN],
    ['has a result that cannot be read', damaged, FINISHED, FORGOTTEN],
    [
      'has a result that is not stored',
      found(recordAfter({ type: 'not_stored' })),
      FINISHED,
      FORGOTTEN,
    ],
    ['is free', found(recordAfter({ type: 'released' }))],
  ])('of a record that %s', (_, finding, ...possible) => {
    for (const as of [FREED, FINISHED, FORGOTTEN]) {
      const state = as.type === 'finished' ? 'finished' : 'freed'
      expect(resolveAs(finding, as)?.state).toBe(possible.includes(as) ? state : undefined)
    }
    for (const fence of [0, RUN.fence - 1, RUN.fence + 1]) {
      for (const as of [FREED, FINISHED, FORGOTTEN])
        expect(resolveAs(finding, as, fence)).toBeUndefined()
    }
  })

  it('of one that cannot be read is only that nothing has happened', () => {
    expect(resolveAs(found(UNREADABLE), FREED, 0)).toEqual({
      state: 'freed',
      owner: 'operator',
      fence: 77,
      fingerprint: '',
      retentionMs: DAY_MS,
      expiresAt: NOW + DAY_MS,
    })
    expect(resolveAs(found(UNREADABLE), FINISHED, 0)).toBeUndefined()
    expect(resolveAs(found(UNREADABLE), FREED, 77)).toBeUndefined()
    expect(resolveAs(found(UNREADABLE), FORGOTTEN, 0)).toBeUndefined()
    for (const as of [FREED, FINISHED, FORGOTTEN]) {
      expect(resolveAs(found({ ...UNREADABLE, version: '2' }), as, 0)).toBeUndefined()
    }
  })

  it('belongs to somebody else from then on, and keeps what it was', () => {
    const { fence, fingerprint, retentionMs } = RUN
    const kept = { owner: 'operator', fence, fingerprint, retentionMs }
    expect(resolveAs(found(abandoned), FREED)).toMatchObject({ ...kept, state: 'freed' })
    expect(resolveAs(found(abandoned), FINISHED)).toMatchObject({
      ...kept,
      ...{ result: Buffer.from('answer') },
    })
    const forgotten = resolveAs(found(recordAfter(FINISHED as Ending)), FORGOTTEN)
    expect(forgotten).toMatchObject({ ...kept, state: 'freed', reason: 'rolled back' })
    expect(forgotten && viewOf(found(forgotten)).reason).toBe('rolled back')
  })

  it.each([
    ['a short one', 5000, DAY_MS],
    ['a long one', 3 * DAY_MS, 3 * DAY_MS],
  ])('lasts a day, or as long as the record: %s', (_, retentionMs, lastsMs) => {
    const record = recordAfter({ type: 'abandoned' }, { ...RUN, retentionMs })
    for (const as of [FREED, FINISHED]) {
      expect(resolveAs(found(record), as)?.expiresAt).toBe(NOW + lastsMs)
    }
    const endless = found({ ...record, expiresAt: Number.POSITIVE_INFINITY })
    expect(resolveAs(endless, FREED)?.expiresAt).toBe(NOW + DAY_MS)
  })

  it('is above what it was for whoever comes next', () => {
    const freed = resolveAs(found(abandoned), FREED)
    const request = { ...RUN, owner: 'b', fingerprint: 'another', rerunAbandoned: false }
    const { answer } = reserve(freed, request, { now: NOW, minFence: 1 })
    expect(answer).toEqual({ outcome: 'reserved', fence: RUN.fence + 1 })
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

it.each(['', 'a:b', 'a b', 'x'.repeat(65), 'á', 'a\n'])('%j is no key id', (text) => {
  expect(KEY_ID_FORM.test(text)).toBe(false)
})

it.each([
  '',
  '6f2c',
  'jwe:',
  'jwe::6f2c',
  'jwe:key',
  'JWE:key:6f2c',
  ' jwe:key:6f2c',
  `jwe:${'x'.repeat(65)}:6f2c`,
])('any other owner, such as %j, tells none', (owner) => expect(keyIdOf(owner)).toBeUndefined())
