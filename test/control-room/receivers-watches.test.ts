import type { KeySetEvent, RecordView } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stateOf } from '../../example-app/control-room/page/panels/writes-rules.js'
import type { NewEvent } from '../../example-app/control-room/ports.js'
import { watchDenials } from '../../example-app/control-room/receivers/denials.js'
import { createDeniedList } from '../../example-app/control-room/receivers/ipc/denied-list.js'
import { createKeySetWatch } from '../../example-app/control-room/receivers/key-set-watch.js'
import { watchWrites } from '../../example-app/control-room/receivers/writes.js'
import { until } from '../support/until.js'

const jwksUri = 'http://127.0.0.1:2/auth/jwt/jwks.json'

const keysEvent = (type: 'not_modified' | 'budget_exhausted' | 'expired', at = 0): NewEvent => ({
  at,
  receiver: 'orders-1',
  channel: 'keys',
  level: 'info',
  title: type,
  event: { type, jwksUri } as KeySetEvent,
})

describe('the line of a key set', () => {
  function watchAt(start: number) {
    let now = start
    const watch = createKeySetWatch(() => now)
    const at = (moment: number) => {
      now = moment
      return watch
    }
    return { watch, at, line: () => watch.state().keySetLine }
  }

  it('joins equal states', () => {
    const { at, line } = watchAt(0)
    at(1000).enter('cold')
    at(2000).enter('fresh')
    at(3000).enter('fresh')
    at(4000).enter('stale')
    expect(line()).toEqual([
      { since: 1000, state: 'cold' },
      { since: 2000, state: 'fresh' },
      { since: 4000, state: 'stale' },
    ])
  })

  it('holds five minutes', () => {
    const { at, line } = watchAt(0)
    at(0).enter('cold')
    at(10_000).enter('fresh')
    at(20_000).enter('stale')
    at(310_000)
    expect(line()).toEqual([
      { since: 10_000, state: 'fresh' },
      { since: 20_000, state: 'stale' },
    ])
    at(1_000_000)
    expect(line()).toEqual([{ since: 700_000, state: 'stale' }])
  })

  it('goes with what was fetched, and when the budget was exhausted', () => {
    const { watch } = watchAt(0)
    expect(watch.state()).toEqual({ keySetLine: [], keySetFetches: { fetched: 0, failed: 0 } })
    watch.note(keysEvent('not_modified'))
    watch.note(keysEvent('expired'))
    watch.note({ ...keysEvent('expired'), event: { type: 'failed', reason: 'timeout', jwksUri } })
    watch.note(keysEvent('budget_exhausted', 7))
    expect(watch.state()).toMatchObject({
      keySetFetches: { fetched: 1, failed: 1 },
      budgetExhaustedAt: 7,
    })
  })
})

describe('the last writes', () => {
  const event = (record: string, reason: 'reserved' | 'result_kept'): NewEvent => ({
    at: Date.now(),
    receiver: 'orders-1',
    channel: 'idempotency',
    level: 'info',
    title: reason,
    event: {
      by: 'requireIdempotencyKey',
      caller: 'billing',
      record,
      outcome: 'accepted',
      reason,
      fence: 1,
    },
  })

  function openWrites(inspect: (record: string) => Promise<RecordView | undefined>) {
    const keeper = { inspect, resolve: async () => false }
    const writes = watchWrites({ keeper, onChange() {} })
    onTestFinished(() => writes.close())
    return writes
  }

  it('are twenty, and what is under way is not pushed away by what is done', async () => {
    const writes = openWrites(async (record) => ({
      fence: 1,
      state: record === 'held' ? 'running' : 'finished',
    }))
    writes.note(event('held', 'reserved'))
    for (let index = 0; index < 100; index += 1) {
      writes.note(event(`w-${index}`, 'reserved'))
      writes.note(event(`w-${index}`, 'result_kept'))
    }
    const names = () => writes.list().map(({ record }) => record)
    expect(names()).toHaveLength(20)
    expect(names()).toContain('held')
    expect(names()[0]).toBe('w-99')
    await until('all are read', async () => writes.list().every(({ view }) => view !== undefined))
    for (let index = 100; index < 200; index += 1) writes.note(event(`w-${index}`, 'result_kept'))
    expect(names()).toContain('held')
  })

  it('are gone once their records are, though they were over', async () => {
    let isThere = true
    const writes = openWrites(async () => {
      return isThere ? { fence: 1, state: 'finished' } : undefined
    })
    writes.note(event('r', 'result_kept'))
    await until('it is read', async () => writes.list()[0]?.view !== undefined)
    isThere = false
    await until('it is gone', async () => writes.list()[0]?.view === undefined)
    expect(writes.list()[0]?.readAt).toBeGreaterThan(0)
  })

  it('are not said to be gone before they were read', () => {
    const write = { record: 'r', caller: 'billing', receiver: 'orders-1', seenAt: 1 } as const
    expect(stateOf({ ...write, readAt: 0 })).toBe('unread')
    expect(stateOf({ ...write, readAt: 1 })).toBe('gone')
    expect(stateOf({ ...write, readAt: 1, view: { fence: 1, state: 'freed' } })).toBe('freed')
  })

  it('keep what was read last while the store is unreachable', async () => {
    let isUp = true
    const writes = openWrites(async () => {
      if (!isUp) throw new Error('unreachable')
      return { fence: 1, state: 'abandoned' }
    })
    writes.note(event('r', 'reserved'))
    await until('it is read', async () => writes.list()[0]?.view !== undefined)
    isUp = false
    const before = writes.list()
    await expect(writes.read('r')).rejects.toThrow('unreachable')
    expect(writes.list()).toEqual(before)
  })
})

describe('what is denied', () => {
  const issuer = 'https://issuer.example'

  it('is shown whoever has denied it, and of this issuer alone', async () => {
    const list = createDeniedList()
    const containment = {
      deny: async (entry: Parameters<typeof list.deny>[0]) => ({ entry: list.deny(entry) }),
      allow: async (target: Parameters<typeof list.allow>[0]) => list.allow(target),
      entries: async () => list.entries(),
      version: list.version,
    }
    const denials = watchDenials({ issuer, containment, onChange() {} })
    onTestFinished(() => {
      denials.close()
      list.close()
    })
    const entry = {
      kind: 'key',
      value: 'k',
      reason: 'leaked',
      by: 'ops',
      at: 1,
      until: null,
    } as const
    const deniedAt = Date.now()
    list.deny({ ...entry, issuer })
    list.deny({ ...entry, issuer: 'https://other.example', value: 'other' })
    await until('it is shown', async () => denials.list().length > 0)
    denials.begun('orders-1')
    const appliedAt = Date.now() + 5
    denials.inForce('orders-1', appliedAt, ['key k'])
    expect(denials.list()).toMatchObject([{ kind: 'key', value: 'k', reason: 'leaked', at: 1000 }])
    const appliedAfter = denials.list()[0]?.appliedAfter['orders-1']
    expect(appliedAfter).toBeGreaterThanOrEqual(5)
    expect(appliedAfter).toBeLessThanOrEqual(appliedAt - deniedAt)
    expect(denials.list()[0]?.appliedAfter['orders-2']).toBeUndefined()
  })

  it('ends with the later end of two', async () => {
    const list = createDeniedList()
    onTestFinished(() => list.close())
    const entry = { issuer, kind: 'token', value: 't', reason: 'r', by: 'b', at: 1 } as const
    const far = Date.now() / 1000 + 1000
    list.deny({ ...entry, until: far })
    expect(list.deny({ ...entry, until: far - 500 })).toMatchObject({ until: far })
    expect(list.deny({ ...entry, until: null })).toMatchObject({ until: null })
    list.deny({ issuer, kind: 'issued-before', value: 5, reason: 'r', by: 'b', at: 1, until: null })
    const earlier = {
      issuer,
      kind: 'issued-before',
      value: 4,
      reason: 'r',
      by: 'b',
      at: 1,
    } as const
    expect(list.deny({ ...earlier, until: null })).toMatchObject({ value: 5 })
    expect(list.entries()).toHaveLength(2)
  })
})
