import { expect, it, vi } from 'vitest'
import { createEventLog } from '../../example-app/control-room/metrics/event-log.js'
import { openMetrics } from '../../example-app/control-room/metrics/metrics.js'
import { percentile, spreadOf } from '../../example-app/control-room/metrics/percentile.js'
import { createReservoir } from '../../example-app/control-room/metrics/reservoir.js'
import { createSampler } from '../../example-app/control-room/metrics/sample.js'
import { createSeconds } from '../../example-app/control-room/metrics/seconds.js'
import type { NewEvent, ReceiverReport } from '../../example-app/control-room/ports.js'
import type { EventsMessage, RoomEvent, Second } from '../../example-app/control-room/protocol.js'

const START = 1_800_000_000_000

const NOTHING: ReceiverReport = {
  receiver: 'orders-1',
  events: [],
  requests: [],
  storeCalls: [],
  cache: { hits: 0, misses: 0 },
}

const newEvent = (level: RoomEvent['level'] = 'info'): NewEvent => ({
  at: START,
  receiver: 'orders-1',
  channel: 'decision',
  level,
  title: level,
  event: { outcome: 'accepted', by: 'serviceAuth' },
})

const numbered = (number: number, level?: RoomEvent['level']): RoomEvent => ({
  ...newEvent(level),
  number,
})

it('takes percentiles by the nearest rank', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1)
  expect([0.5, 0.99, 1].map((share) => percentile(hundred, share))).toEqual([50, 99, 100])
  expect(spreadOf([3, 1, 2])).toEqual({ medianMs: 2, p99Ms: 3 })
  expect(spreadOf([7])).toEqual({ medianMs: 7, p99Ms: 7 })
  expect(spreadOf([])).toBeUndefined()
})

it('keeps a fair sample beyond the limit of a second', () => {
  const reservoir = createReservoir()
  for (let value = 0; value < 40_960; value += 1) reservoir.add(value)
  expect(reservoir.values()).toHaveLength(4096)
  const { medianMs } = spreadOf(reservoir.values()) ?? { medianMs: 0 }
  expect(medianMs / 40_960).toBeGreaterThan(0.45)
  expect(medianMs / 40_960).toBeLessThan(0.55)
})

it('counts each second exactly, those without a request included', () => {
  const seconds = createSeconds(START + 200)
  const request = { receiver: 'orders-1', outcome: 'accepted', milliseconds: 4 } as const
  seconds.add({
    ...NOTHING,
    requests: [request, { ...request, outcome: 'refused', milliseconds: 2 }],
    storeCalls: [
      { operation: 'consume', ok: true, durationMs: 1 },
      { operation: 'reserve', ok: false, durationMs: 9 },
    ],
    cache: { hits: 5, misses: 1 },
  })
  expect(seconds.end(START + 999)).toEqual([])
  const ended = seconds.end(START + 2100)
  expect(ended.map(({ at }) => at)).toEqual([START, START + 1000])
  expect(ended[0]).toEqual({
    at: START,
    requests: { accepted: 1, replayed: 0, refused: 1, undecided: 0, failed: 0 },
    latency: { medianMs: 2, p99Ms: 4 },
    cacheHits: 5,
    cacheMisses: 1,
    store: { medianMs: 1, p99Ms: 9 },
    storeFailures: 1,
  })
  expect(ended[1]).not.toHaveProperty('latency')
  expect(seconds.totals()).toMatchObject({ accepted: 1, refused: 1, failed: 0 })
})

it('keeps five minutes, also after the machine has slept for an hour', () => {
  const seconds = createSeconds(START)
  seconds.end(START + 400_000)
  expect(seconds.last()).toHaveLength(300)
  expect(seconds.last().at(-1)?.at).toBe(START + 399_000)
  seconds.end(START + 4_000_000)
  expect(seconds.last()).toHaveLength(300)
  expect(seconds.last()[0]?.at).toBe(START + 3_700_000)
  expect(seconds.last().at(-1)?.at).toBe(START + 3_999_000)
})

it('waits where the clock was set back, and loses nothing', () => {
  const seconds = createSeconds(START)
  expect(seconds.end(START - 60_000)).toEqual([])
  const request = { receiver: 'orders-1', outcome: 'failed', milliseconds: 1 } as const
  seconds.add({ ...NOTHING, requests: [request] })
  expect(seconds.end(START + 1000)).toMatchObject([{ at: START, requests: { failed: 1 } }])
})

it('tells each second as it ends, to whoever has subscribed', () => {
  vi.useFakeTimers({ now: START })
  try {
    const metrics = openMetrics()
    const told: Second[] = []
    const stop = metrics.subscribe((seconds) => told.push(...seconds))
    metrics.receive({ ...NOTHING, cache: { hits: 3, misses: 0 } })
    vi.advanceTimersByTime(999)
    expect(told).toEqual([])
    vi.advanceTimersByTime(1001)
    expect(told.map(({ at, cacheHits }) => [at, cacheHits])).toEqual([
      [START, 3],
      [START + 1000, 0],
    ])
    expect(metrics.last()).toEqual(told)
    stop()
    vi.advanceTimersByTime(2000)
    expect(told).toHaveLength(2)
    expect(metrics.last()).toHaveLength(4)
    metrics.close()
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

it('shows all events while they are few', () => {
  const sampler = createSampler(3)
  sampler.add(numbered(1))
  sampler.add(numbered(2, 'warn'))
  expect(sampler.take()).toMatchObject({ events: [{ number: 1 }, { number: 2 }], leftOut: 0 })
  expect(sampler.take()).toEqual({ events: [], leftOut: 0 })
})

it('prefers errors, changes and refusals when it must leave events out, in their order', () => {
  const sampler = createSampler(4)
  sampler.add(numbered(1, 'error'))
  sampler.add({ ...numbered(2), channel: 'denylist' })
  for (let number = 3; number < 100; number += 1) sampler.add(numbered(number))
  sampler.add(numbered(100, 'warn'))
  const { events, leftOut } = sampler.take()
  expect(events.map(({ number }) => number)).toEqual([1, 2, 99, 100])
  expect(leftOut).toBe(96)
})

it('numbers events, keeps the last five hundred, and tells subscribers how many it left out', () => {
  vi.useFakeTimers()
  try {
    const log = createEventLog()
    const told: EventsMessage[] = []
    const stop = log.subscribe((message) => told.push(message))
    for (let batch = 0; batch < 100; batch += 1) {
      log.add(Array.from({ length: 100 }, () => newEvent()))
    }
    const [refusal] = log.add([newEvent('warn')])
    expect(refusal?.number).toBe(10_001)
    vi.advanceTimersByTime(250)
    expect(told).toHaveLength(1)
    expect(told[0]?.events).toHaveLength(50)
    expect(told[0]?.events.at(-1)).toEqual(refusal)
    expect(told[0]?.leftOut).toBe(9951)
    const { events, leftOut } = log.last()
    expect(events).toHaveLength(500)
    expect(events.map(({ number }) => number)).toEqual(
      Array.from({ length: 500 }, (_, index) => 9502 + index),
    )
    expect(leftOut).toBe(0)
    vi.advanceTimersByTime(1000)
    expect(told).toHaveLength(1)
    stop()
    log.add([newEvent()])
    vi.advanceTimersByTime(250)
    expect(told).toHaveLength(1)
    log.close()
  } finally {
    vi.useRealTimers()
  }
})
