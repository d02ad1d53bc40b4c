/**
 * Callbacks to run when a signal aborts. All callbacks of a signal share one listener: Node warns of more than ten
 * listeners, and an app may pass one signal to any number of calls.
 */
const listenersOf = new WeakMap<AbortSignal, Listeners>()

interface Listeners {
  readonly all: Set<() => void>
  readonly dispatch: () => void
}

/** Calls `listener` when the signal aborts, not if it has aborted already. Returns a function that removes it. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listeners = listenersOf.get(signal) ?? createListeners(signal)
  listeners.all.add(listener)
  return () => {
    listeners.all.delete(listener)
    if (listeners.all.size > 0 || listenersOf.get(signal) !== listeners) return
    listenersOf.delete(signal)
    signal.removeEventListener('abort', listeners.dispatch)
  }
}

/**
 * Aborts the controller when the signal aborts, or immediately if it has aborted. Returns a function that
 * disconnects the two. Replaces `AbortSignal.any`, which on Node 20 loses a timeout signal that nothing else
 * refers to, and leaks memory on a long-lived signal.
 */
export function abortWith(controller: AbortController, signal: AbortSignal): () => void {
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  return onAbort(signal, abort)
}

function createListeners(signal: AbortSignal): Listeners {
  const all = new Set<() => void>()
  const dispatch = (): void => {
    for (const listener of [...all]) listener()
  }
  const listeners = { all, dispatch }
  listenersOf.set(signal, listeners)
  signal.addEventListener('abort', dispatch)
  return listeners
}
