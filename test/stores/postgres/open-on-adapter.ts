import { setTimeout as delay } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import type { CoupledIdempotencyOptions } from 'express-service-auth'
import { onTestFinished } from 'vitest'
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres-options.js'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres/postgres-store.js'
import { nameOf } from '../../faults/postgres/stage.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../../support/receiver/express-majors.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import type { Adapter, OpenAdapter } from './adapters/libraries.js'

const CLOSING_MS = 500

export interface OnAdapter {
  readonly url: string
  readonly max: number
  readonly store?: PostgresStoreOptions
  /** Of the key. */
  readonly options?: Partial<CoupledIdempotencyOptions>
  handler(store: PostgresStore<unknown>, opened: OpenAdapter): RequestHandler
}

/** Opens a receiver on a library; closed at the end of the test. */
export async function openOnAdapter(
  adapter: Adapter,
  { url, max, store: storeOptions, options = {}, handler }: OnAdapter,
) {
  const opened = await adapter.open(url, max)
  const limits = { acquireMs: 10_000, transactionMs: 5000, resolveMs: 10_000 }
  const store = postgresStore(opened.runner, { sweepSeconds: false, ...limits, ...storeOptions })
  const express = EXPRESS_MAJORS[1]?.express as ExpressModule
  const receiver = await openOrders({ express, store, options, handler: handler(store, opened) })
  onTestFinished(async () => {
    await receiver.close()
    store.close()
    // A library may wait for a connection that it has lost.
    await Promise.race([opened.close(), delay(CLOSING_MS, undefined, { ref: false })])
  })
  return Object.assign(receiver, { store })
}

/** The SQL of one effect under the request's key, by the name that `nameOf` gives to the key. */
export const effectOf = (request: Parameters<RequestHandler>[0]): string =>
  `insert into effect (key) values ('${nameOf(request.idempotency?.key ?? '')}')`
