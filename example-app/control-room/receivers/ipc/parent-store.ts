import {
  type CanRead,
  type Ending,
  type Reservation,
  type ReservationRequest,
  type Resolution,
  type Run,
  ServiceAuthError,
  type Store,
  type StoreFault,
  type StoreHealth,
} from 'express-service-auth'
import { type Calls, type Handlers, Unanswered } from './calls.js'

/*
 * A store of one's own: the parent process keeps the records, and each receiver reaches them through
 * these functions, whose arguments and answers are plain data.
 */

/** The store of this process, for receivers in other processes. */
export function storeHandlers(store: Store, calls: () => Calls): Handlers {
  /** A function cannot be sent: its caller is asked instead. */
  const asking = (id: number | undefined): CanRead | undefined =>
    id === undefined
      ? undefined
      : (result, fingerprint) => calls().ask('canRead', [id, result, fingerprint])
  return {
    consume: (id: string, ttlMs: number) => store.consume(id, ttlMs),
    reserve: (request: ReservationRequest) => store.reserve(request),
    renew: (run: Run) => store.renew(run),
    settle: (run: Run, ending: Ending) => store.settle(run, ending),
    check: () => store.check(),
    inspect: (record: string, canReadId?: number) => store.inspect(record, asking(canReadId)),
    resolve(record: string, fence: number, [as, canReadId]: CarriedResolution) {
      const canRead = asking(canReadId)
      return store.resolve(record, fence, canRead ? ({ ...as, canRead } as Resolution) : as)
    },
  }
}

type CarriedResolution = readonly [as: Resolution, canRead?: number]

/** Functions that the other process may have called while it answers. */
export interface Lent {
  readonly handlers: Handlers
  /** Lends a function for as long as the call takes. */
  during<T>(lent: CanRead | undefined, call: (id?: number) => Promise<T>): Promise<T>
}

export function createLent(): Lent {
  const lent = new Map<number, CanRead>()
  let lastId = 0
  return {
    handlers: {
      canRead: (id: number, result: Uint8Array, fingerprint: string) =>
        lent.get(id)?.(result, fingerprint) ?? false,
    },
    async during(canRead, call) {
      if (canRead === undefined) return call()
      lastId += 1
      const id = lastId
      lent.set(id, canRead)
      try {
        return await call(id)
      } finally {
        lent.delete(id)
      }
    },
  }
}

/** The parent's store, as a store of this process. */
export function parentStore(calls: Calls, lent: Lent): Store {
  const health = watchHealth()
  const ask: Calls['ask'] = async (name, args, options) => {
    try {
      health.assertOpen()
      const answer = await calls.ask<never>(name, args, options)
      health.up()
      return answer
    } catch (error) {
      health.failed(error)
      throw error
    }
  }
  return {
    consume: (id, ttlMs) => ask('consume', [id, ttlMs]),
    reserve: (request) =>
      ask('reserve', [request], {
        // The caller has already been rejected, and has not run.
        onLateAnswer: (found) => giveBack(calls, request, found as Reservation),
      }),
    renew: (run) => ask('renew', [run]),
    settle: (run, ending) => ask('settle', [run, ending]),
    inspect: (record, canRead) => lent.during(canRead, (id) => ask('inspect', [record, id])),
    async resolve(record, fence, as) {
      const { canRead, ...plain } = Object(as) as { canRead?: CanRead }
      return lent.during(canRead, (id) => ask('resolve', [record, fence, [plain, id]]))
    },
    check: () => ask('check', []),
    health: health.read,
    close: health.close,
  }
}

function giveBack(calls: Calls, request: ReservationRequest, found: Reservation): void {
  if (found.outcome !== 'reserved') return
  const { rerunAbandoned: _, ...rest } = request
  const run = { ...rest, fence: found.fence }
  // In vain where the parent hangs again: the lease runs out.
  calls.ask('settle', [run, { type: 'released' }]).catch(() => undefined)
}

function watchHealth() {
  let health: StoreHealth = { state: 'unused' }
  let isClosed = false
  function down(lastError: StoreFault): void {
    health = { state: 'down', lastError, lastErrorAt: Math.floor(Date.now() / 1000) }
  }
  return {
    read: () => health,
    assertOpen() {
      if (isClosed) throw new ServiceAuthError('unavailable', 'the store is closed')
    },
    up() {
      if (!isClosed) health = { ...health, state: 'up' }
    },
    failed(error: unknown) {
      if (isClosed || !(error instanceof ServiceAuthError)) return
      down(error instanceof Unanswered ? error.fault : 'server')
    },
    close() {
      isClosed = true
      down('closed')
    },
  }
}
