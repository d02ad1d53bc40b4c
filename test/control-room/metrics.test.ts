import { expect, it } from 'vitest'
import { percentile, spreadOf } from '../../example-app/control-room/metrics/percentile.js'
import { createSampler } from '../../example-app/control-room/metrics/sample.js'
import { createSeconds } from '../../example-app/control-room/metrics/seconds.js'
import type { NewEvent, ReceiverReport } from '../../example-app/control-room/ports.js'
import type { RoomEvent } from '../../example-app/control-room/protocol.js'

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
