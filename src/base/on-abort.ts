/**
 * What is to hear that a signal has aborted. One listener serves them all: Node warns of more than
 * ten on one signal, and a caller may share one among any number of calls.
 */
const hearersOf = new WeakMap<AbortSignal, Hearers>()

interface Hearers {
  readonly all: Set<() => void>
  readonly listener: () => void
}

/** Calls `hearer` when the signal aborts, not when it has aborted already. Returns what ends that. */
export function onAbort(signal: AbortSignal, hearer: () => void): () => void {
  const hearers = hearersOf.get(signal) ?? listenTo(signal)
  hearers.all.add(hearer)
  return () => {
    hearers.all.delete(hearer)
    if (hearers.all.size > 0 || hearersOf.get(signal) !== hearers) return
    hearersOf.delete(signal)
    signal.removeEventListener('abort', hearers.listener)
  }
}

function listenTo(signal: AbortSignal): Hearers {
  const all = new Set<() => void>()
  const listener = (): void => {
    for (const hearer of [...all]) hearer()
  }
  const hearers = { all, listener }
  hearersOf.set(signal, hearers)
  signal.addEventListener('abort', listener)
  return hearers
}
