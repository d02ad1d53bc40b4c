import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Ending, Reservation, Run } from '../../../src/idempotency/leased/idempotency-store.js'
import {
  type IdempotencyRecord,
  renew,
  reserve,
  settle,
} from '../../../src/idempotency/leased/record.js'

const LEASE_MS = 100
const RETENTION_MS = 1000

interface Actor {
  readonly owner: string
  readonly fingerprint: string
  /** As the middleware knows it: from the first reply that it got. */
  run: Run | undefined
  hasEnded: boolean
}

/** The record as a store keeps it, and what must be true of it whatever happens. */
class World {
  now = 0
  minFence = 0
  record: IdempotencyRecord | undefined
  readonly actors: Actor[] = ['a', 'b', 'c', 'd'].map((owner, index) => ({
    owner,
    fingerprint: index === 3 ? 'other' : 'same',
    run: undefined,
    hasEnded: false,
  }))
  /** Runs since the key was free for the last time: never used, released, or past its retention. */
  runsOfKey = 0
  highestFence = 0
  /** The fence of the result that is kept. */
  resultFence: number | undefined

  readonly rerunAbandoned: boolean

  constructor(rerunAbandoned: boolean) {
    this.rerunAbandoned = rerunAbandoned
  }

  /** A record that is over is forgotten; a fence never is. */
  private forget(): void {
    if (this.record && this.now >= this.record.expiresAt) {
      this.record = undefined
      this.runsOfKey = 0
      this.resultFence = undefined
    }
  }

  reserve(actor: Actor, isReplyLost: boolean): void {
    this.forget()
    if (actor.run || actor.hasEnded) return
    const before = this.record
    this.minFence += 1
    const { answer, record } = reserve(
      this.record,
      {
        recordId: 'k',
        owner: actor.owner,
        fingerprint: actor.fingerprint,
        leaseMs: LEASE_MS,
        retentionMs: RETENTION_MS,
        rerunAbandoned: this.rerunAbandoned,
      },
      { now: this.now, minFence: this.minFence },
    )
    this.record = record
    if (answer.outcome !== 'reserved') {
      this.expectRefusalFits(actor, answer, before)
      expect(record).toEqual(before)
      return
    }
    const isRepeat = before?.state === 'running' && before.owner === actor.owner
    if (!isRepeat) {
      if (before?.state === 'freed') this.runsOfKey = 0
      this.runsOfKey += 1
      expect(answer.fence).toBeGreaterThan(this.highestFence)
      this.highestFence = answer.fence
      if (!this.rerunAbandoned) expect(this.runsOfKey).toBe(1)
    } else expect(answer.fence).toBe(before.fence)
    if (!isReplyLost) actor.run = this.runOf(actor, answer.fence)
  }

  private expectRefusalFits(
    actor: Actor,
    answer: Reservation,
    before: IdempotencyRecord | undefined,
  ): void {
    expect(before).toBeDefined()
    if (answer.outcome === 'mismatch') expect(before?.fingerprint).not.toBe(actor.fingerprint)
    if (answer.outcome === 'finished') expect(before?.state).toBe('finished')
    if (answer.outcome === 'abandoned') expect(this.rerunAbandoned).toBe(false)
    if (answer.outcome === 'running') expect(answer.leaseLeftMs).toBeLessThanOrEqual(LEASE_MS)
  }

  private runOf({ owner, fingerprint }: Actor, fence: number): Run {
    const times = { leaseMs: LEASE_MS, retentionMs: RETENTION_MS }
    return { recordId: 'k', owner, fence, fingerprint, ...times }
  }

  renew(actor: Actor): void {
    this.forget()
    if (!actor.run || actor.hasEnded) return
    const before = this.record
    const { answer, record } = renew(this.record, actor.run, this.now)
    if (before && before.owner !== actor.owner) expect([answer, record]).toEqual([false, before])
    if (before?.state === 'finished' || before?.state === 'freed') expect(answer).toBe(false)
    if (before?.state === 'not_stored') expect(record).toEqual(before)
    if (answer) expect(record).toMatchObject({ state: 'running', owner: actor.owner })
    if (!before && answer) this.runsOfKey = 1
    this.record = record
  }

  settle(actor: Actor, ending: Ending, isLast: boolean): void {
    this.forget()
    if (!actor.run) return
    const before = this.record
    const { answer, record } = settle(this.record, { run: actor.run, ending }, this.now)
    if (before && before.owner !== actor.owner) expect([answer, record]).toEqual([false, before])
    if (before !== undefined && before.state !== 'running') expect(record).toEqual(before)
    if (!before) this.runsOfKey = 1
    if (record?.state === 'finished' && record !== before) {
      expect(record.fence).toBeGreaterThanOrEqual(this.resultFence ?? 0)
      this.resultFence = record.fence
    }
    this.record = record
    if (isLast) actor.hasEnded = true
  }
}

const ENDINGS: Ending[] = [
  { type: 'finished', result: Buffer.from('result') },
  { type: 'not_stored' },
  { type: 'abandoned' },
  { type: 'released' },
]

type Step = (world: World) => void

const actorOf = (world: World, index: number): Actor => world.actors[index] as Actor
const actors = fc.nat({ max: 3 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(actors, fc.boolean()).map(([index, isLost]): Step => {
    return (world) => world.reserve(actorOf(world, index), isLost)
  }),
  actors.map(
    (index): Step =>
      (world) =>
        world.renew(actorOf(world, index)),
  ),
  fc
    .tuple(actors, fc.constantFrom(...ENDINGS), fc.boolean())
    .map(([index, ending, isLast]): Step => {
      return (world) => world.settle(actorOf(world, index), ending, isLast)
    }),
  fc.constantFrom(1, 50, 99, 100, 101, 1000, 1101).map(
    (ms): Step =>
      (world) => {
        world.now += ms
      },
  ),
)

describe('The record of a key', () => {
  it.each([false, true])('holds its promises whatever happens (rerun: %s)', (rerunAbandoned) => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
        const world = new World(rerunAbandoned)
        for (const take of steps) take(world)
      }),
      { numRuns: 5000 },
    )
  })

  const run: Run = {
    recordId: 'k',
    owner: 'a',
    fence: 1,
    fingerprint: 'same',
    leaseMs: LEASE_MS,
    retentionMs: RETENTION_MS,
  }
  const ask = (stored: IdempotencyRecord | undefined, now: number, over = {}) =>
    reserve(stored, { ...run, owner: 'b', rerunAbandoned: false, ...over }, { now, minFence: 1 })
  const endedBy = (ending: Ending, stored?: IdempotencyRecord): IdempotencyRecord | undefined =>
    settle(stored, { run, ending }, 0).record

  it('is kept from the end of the run, or of its lease, and not a moment longer', () => {
    for (const ending of ENDINGS.filter(({ type }) => type !== 'released')) {
      expect(ask(endedBy(ending), RETENTION_MS - 1).answer.outcome).not.toBe('reserved')
      expect(ask(endedBy(ending), RETENTION_MS).answer.outcome).toBe('reserved')
    }
    const { record } = ask(undefined, 0, { owner: 'a' })
    expect(ask(record, LEASE_MS - 1).answer).toEqual({ outcome: 'running', leaseLeftMs: 1 })
    expect(ask(record, LEASE_MS).answer.outcome).toBe('abandoned')
    expect(ask(record, LEASE_MS + RETENTION_MS - 1).answer.outcome).toBe('abandoned')
    expect(ask(record, LEASE_MS + RETENTION_MS).answer.outcome).toBe('reserved')
  })

  it('keeps the rest of the tombstone that it replaces', () => {
    const tombstone: IdempotencyRecord = { ...run, state: 'freed', expiresAt: 5000 }
    const { record } = ask(tombstone, 2000)
    // 3 seconds are left of it.
    const retentionMs = RETENTION_MS + 3000
    expect(record).toMatchObject({ retentionMs, leaseUntil: 2100, expiresAt: 2100 + retentionMs })
    const second = { ...run, owner: 'b', fence: 2 }
    expect(renew(record, second, 2050).record).toMatchObject({
      retentionMs,
      expiresAt: 2150 + retentionMs,
    })
    const expiresAt: Record<Ending['type'], number> = {
      finished: 2100 + retentionMs,
      not_stored: 2100 + retentionMs,
      abandoned: 2100 + retentionMs,
      released: 2100 + 3000,
    }
    for (const ending of ENDINGS) {
      expect(settle(record, { run: second, ending }, 2100).record).toMatchObject({
        retentionMs,
        expiresAt: expiresAt[ending.type],
      })
    }
    const rerun = ask(record, 2100, { owner: 'c', rerunAbandoned: true }).record
    expect(rerun).toMatchObject({ fence: 3, retentionMs })
  })

  it('is kept for as long as its last run requests, if that is longer', () => {
    const { record } = renew(undefined, run, 0)
    expect(renew(record, { ...run, retentionMs: 5000 }, 0).record?.retentionMs).toBe(5000)
  })
})
