import type { ReceiverReport } from '../ports.js'
import { OUTCOMES, type Outcome, type Second } from '../protocol.js'
import { spreadOf } from './percentile.js'
import { createReservoir } from './reservoir.js'

type Counts = Record<Outcome, number>

/** What has happened, by the second in which it was reported. Counts are exact. */
export interface Seconds {
  add(report: ReceiverReport): void
  /** Closes the seconds that are over, and returns them, those without a request included. */
  end(now: number): readonly Second[]
  /** The last five minutes, without the second of now. */
  last(): readonly Second[]
  /** Since the start. */
  totals(): Readonly<Counts>
}

const SECOND_MS = 1000
const KEPT_SECONDS = 300

const noneOfEach = (): Counts =>
  Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Counts

export function createSeconds(now: number): Seconds {
  const totals = noneOfEach()
  let current = openSecond(startOf(now))
  let kept: readonly Second[] = []

  function end(nowMs: number): readonly Second[] {
    const ended: Second[] = []
    // After a machine's sleep there is nothing to be seen in most of the time.
    const oldest = startOf(nowMs) - KEPT_SECONDS * SECOND_MS
    while (current.at < startOf(nowMs)) {
      ended.push(current.close())
      current = openSecond(Math.max(current.at + SECOND_MS, oldest))
    }
    kept = [...kept, ...ended].slice(-KEPT_SECONDS)
    return ended
  }

  return {
    add(report) {
      for (const { outcome } of report.requests) totals[outcome] += 1
      current.add(report)
    },
    end,
    last: () => kept,
    totals: () => ({ ...totals }),
  }
}

const startOf = (now: number): number => Math.floor(now / SECOND_MS) * SECOND_MS

function openSecond(at: number) {
  const requests = noneOfEach()
  const latency = createReservoir()
  const store = createReservoir()
  let cacheHits = 0
  let cacheMisses = 0
  let storeFailures = 0
  return {
    at,
    add(report: ReceiverReport): void {
      for (const { outcome, milliseconds } of report.requests) {
        requests[outcome] += 1
        latency.add(milliseconds)
      }
      for (const { ok, durationMs } of report.storeCalls) {
        store.add(durationMs)
        if (!ok) storeFailures += 1
      }
      cacheHits += report.cache.hits
      cacheMisses += report.cache.misses
    },
    close(): Second {
      const spread = spreadOf(latency.values())
      const storeSpread = spreadOf(store.values())
      return {
        at,
        requests,
        ...(spread && { latency: spread }),
        cacheHits,
        cacheMisses,
        ...(storeSpread && { store: storeSpread }),
        storeFailures,
      }
    },
  }
}
