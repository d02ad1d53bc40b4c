import { type ReadonlySignal, signal, useSignalEffect } from '@preact/signals'
import { useMemo } from 'preact/hooks'

/**
 * The value of a signal as of the last frame that the browser has drawn: however often it changes,
 * whoever reads this is drawn once a frame, and not at all while the page cannot be seen.
 */
export function useEachFrame<Value>(source: ReadonlySignal<Value>): ReadonlySignal<Value> {
  const shown = useMemo(() => signal(source.peek()), [source])
  useSignalEffect(() => {
    const value = source.value
    const frame = requestAnimationFrame(() => {
      shown.value = value
    })
    return () => cancelAnimationFrame(frame)
  })
  return shown
}
