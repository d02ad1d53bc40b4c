/**
 * Callbacks to run when a signal aborts. One listener serves them all: Node warns of more than
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

/**
 * Aborts the controller when the signal aborts, or now if it has. Returns what ends that. On Node 20
 * `AbortSignal.any` loses a time limit that nobody else refers to, and it collects listeners on a signal
 * that lives long.
 */
export function abortWith(controller: AbortController, signal: AbortSignal): () => void {
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  return onAbort(signal, abort)
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
