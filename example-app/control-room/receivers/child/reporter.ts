import type { StoreEvent, TokenCacheHealth } from 'express-service-auth'
import type { EndedRequest, NewEvent } from '../../ports.js'
import type { FromReceiver } from '../messages.js'

/** Gathers what the next report has. */
export interface Reporter {
  event(event: NewEvent): void
  request(request: EndedRequest): void
  storeCall(call: StoreEvent): void
  /** Sends the report now, if there is anything in it. */
  flush(): void
}

const REPORT_EVERY_MS = 50

/** Reports to the parent in batches; nothing is left out, however much it is. */
export function createReporter(
  send: (message: FromReceiver) => void,
  readCache: () => Pick<TokenCacheHealth, 'hits' | 'misses'> | undefined,
): Reporter {
  let events: NewEvent[] = []
  let requests: EndedRequest[] = []
  let storeCalls: StoreEvent[] = []
  let counted = { hits: 0, misses: 0 }

  function cacheSinceLast(): { hits: number; misses: number } {
    const { hits, misses } = readCache() ?? counted
    const since = { hits: hits - counted.hits, misses: misses - counted.misses }
    counted = { hits, misses }
    return since
  }

  function flush(): void {
    const cache = cacheSinceLast()
    const many = events.length + requests.length + storeCalls.length + cache.hits + cache.misses
    if (many === 0) return
    send({ type: 'report', report: { events, requests, storeCalls, cache } })
    events = []
    requests = []
    storeCalls = []
  }
  setInterval(flush, REPORT_EVERY_MS)

  return {
    event: (event) => void events.push(event),
    request: (request) => void requests.push(request),
    storeCall: (call) => void storeCalls.push(call),
    flush,
  }
}
