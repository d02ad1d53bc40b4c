import { AsyncResource } from 'node:async_hooks'

/** Runs work in one async context, whoever asks for it. */
export type RunInOwnContext = <T>(work: () => T) => T

/**
 * Keeps the async context of this moment for work that outlives a request, such as timers and fetches.
 * Begun in the context of a request, such work would keep that request's `AsyncLocalStorage` stores
 * alive, and tracers would count it as part of the request.
 */
export function captureContext(name: string): RunInOwnContext {
  const owner = new AsyncResource(name)
  return (work) => owner.runInAsyncScope(work)
}
