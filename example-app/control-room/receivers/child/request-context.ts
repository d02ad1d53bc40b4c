import { AsyncLocalStorage } from 'node:async_hooks'
import type { Outcome } from '../../protocol.js'

/** What is known of the request that is under way. */
export interface RequestContext {
  readonly call: string | undefined
  /** The last word of the package on it. */
  word: Exclude<Outcome, 'failed'>
  hasEnded: boolean
}

/** What the package publishes while it works on a request is published in that request's context. */
export const requestContext = new AsyncLocalStorage<RequestContext>()
