/*
 * To be loaded before an app (`node --import`): the package as it would be without the channel of
 * decisions, so that what an unheard channel costs can be measured.
 */
import { register } from 'node:module'
import { isMainThread } from 'node:worker_threads'

const EVENT_MODULE = '/decision/event.js'

const SILENT = `
  export const isObserved = (observers) => observers.length > 0
  export function announceDecision() {}
`

// Node loads this file once more, on the thread where its hooks run.
if (isMainThread) register(import.meta.url)

export function load(url, context, nextLoad) {
  if (!url.endsWith(EVENT_MODULE)) return nextLoad(url, context)
  return { format: 'module', source: SILENT, shortCircuit: true }
}
