import type { ReceiverReport } from '../ports.js'
import type { Second } from '../protocol.js'
import { createSeconds, type Seconds } from './seconds.js'

/** Plots and totals, from the reports of receivers. */
export interface Metrics extends Pick<Seconds, 'last' | 'totals'> {
  receive(report: ReceiverReport): void
  /** Sends each second as it ends; returns the end of that. */
  subscribe(send: (seconds: readonly Second[]) => void): () => void
  close(): void
}

const PERIOD_MS = 250

export function openMetrics(clock: () => number = Date.now): Metrics {
  const seconds = createSeconds(clock())
  const subscribers = new Set<(seconds: readonly Second[]) => void>()

  function endSeconds(): void {
    const ended = seconds.end(clock())
    if (ended.length === 0) return
    for (const send of subscribers) send(ended)
  }

  const timer = setInterval(endSeconds, PERIOD_MS).unref()
  return {
    receive(report) {
      endSeconds()
      seconds.add(report)
    },
    last: seconds.last,
    totals: seconds.totals,
    subscribe(send) {
      subscribers.add(send)
      return () => void subscribers.delete(send)
    },
    close: () => clearInterval(timer),
  }
}
