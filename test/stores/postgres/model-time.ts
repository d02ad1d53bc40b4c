import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'
import { vi } from 'vitest'

const real = timersPromises.setTimeout

/** A pause by the clock that the test has put in. */
const pause = <T>(ms?: number, value?: T): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value as T), ms))

/** Time passes only when the test says so, also for `node:timers/promises`. */
export function stopTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  timersPromises.setTimeout = pause as typeof real
  syncBuiltinESMExports()
}

export function letTimePass(): void {
  timersPromises.setTimeout = real
  syncBuiltinESMExports()
  vi.useRealTimers()
}
