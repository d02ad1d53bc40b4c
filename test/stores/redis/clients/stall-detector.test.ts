import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { detectStalls } from '../../../../src/stores/redis/clients/stall-detector.js'

const never = (): Promise<never> => new Promise(() => {})
const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const onSilence = vi.fn()
beforeEach(() => {
  vi.useFakeTimers()
  onSilence.mockReset()
})
afterEach(() => {
  vi.useRealTimers()
})

it('nothing that comes back while a reply is due is silence, again and again', async () => {
  const { watch } = detectStalls(1000, onSilence)
  void watch(never())
  await vi.advanceTimersByTimeAsync(998)
  expect(onSilence).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(3)
  expect(onSilence).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(1003)
  expect(onSilence).toHaveBeenCalledTimes(2)
})

it('any reply is a sign, a rejection too', async () => {
  const { watch } = detectStalls(1000, onSilence)
  void watch(never())
  for (let turn = 0; turn < 5; turn++) {
    watch(after(1).then(() => Promise.reject(new Error('OOM')))).catch(() => {})
    await vi.advanceTimersByTimeAsync(900)
  }
  expect(onSilence).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(200)
  expect(onSilence).toHaveBeenCalledTimes(1)
})

it('a connection on which nothing is due may be silent, and has no timer', async () => {
  const { watch } = detectStalls(1000, onSilence)
  await watch(Promise.resolve())
  await vi.advanceTimersByTimeAsync(5000)
  expect(vi.getTimerCount()).toBe(0)
  // Its time counts from when something is due again.
  void watch(never())
  await vi.advanceTimersByTimeAsync(998)
  expect(onSilence).not.toHaveBeenCalled()
})

it('what the event loop is too busy to read in time is no silence', async () => {
  vi.useRealTimers()
  const { watch } = detectStalls(20, onSilence)
  let hear = (): void => {}
  const reply = watch(new Promise<void>((resolve) => (hear = resolve)))
  // It has come by the time that both timers strike, and is read after the first.
  setTimeout(() => hear(), 30)
  const busyUntil = performance.now() + 60
  while (performance.now() < busyUntil);
  await reply
  expect(onSilence).not.toHaveBeenCalled()
})

it('once closed it is never told', async () => {
  const { watch, close } = detectStalls(1000, onSilence)
  void watch(never())
  close()
  expect(vi.getTimerCount()).toBe(0)
  await vi.advanceTimersByTimeAsync(5000)
  expect(onSilence).not.toHaveBeenCalled()
})
