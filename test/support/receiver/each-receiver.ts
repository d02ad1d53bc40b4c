import express5, { type Request, type RequestHandler, type Response } from 'express'
import type { RecordKeeper } from 'express-service-auth'
import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { MEMORY, REDIS, type StoreFactory } from '../stores/store-factories.js'
import { type WatchedStore, watchedStore } from '../stores/watched-store.js'
import { withResolvers } from '../with-resolvers.js'
import { EXPRESS_MAJORS, type ExpressMajor, type ExpressModule } from './express-majors.js'
import type { Receiver } from './open-receiver.js'
import { call } from './order-calls.js'
import { type OrdersOptions, openOrders } from './order-receiver.js'

/** Starts the receivers of a suite on one kind of store; they are closed after each test. */
export interface Bench {
  readonly express: ExpressModule
  /** The store of the receiver that was started last. */
  readonly store: WatchedStore
  /** The operator's access to the records of that store. */
  readonly keeper: RecordKeeper
  start(
    handler: RequestHandler,
    options?: OrdersOptions['options'],
    more?: Partial<OrdersOptions>,
  ): Promise<Receiver>
  /** Starts one whose handler is entered by a request, and answers once its test lets it go. */
  startHeld(
    send: (response: Response, request: Request) => unknown,
    options?: OrdersOptions['options'],
  ): Promise<ReturnType<typeof makeStage> & { readonly receiver: Receiver }>
  /** Starts a receiver without `requireIdempotencyKey`. */
  startBare(handler: RequestHandler, more?: Partial<OrdersOptions>): Promise<Receiver>
}

/** Runs a suite on Express 4 with the store in memory, and on Express 5 with Redis. */
export function describeReceivers(title: string, body: (bench: Bench) => void): void {
  for (const each of EXPRESS_MAJORS) {
    const factory = each.express === express5 ? REDIS : MEMORY
    describe(`${title}, ${each.major}, ${factory.name}`, () => body(benchOf(factory, each)))
  }
}

function benchOf(factory: StoreFactory, { express }: ExpressMajor): Bench {
  let opened: Awaited<ReturnType<StoreFactory['open']>>
  let store: WatchedStore
  const receivers: Receiver[] = []
  beforeAll(async () => {
    opened = await factory.open()
  })
  afterAll(() => opened.close())
  afterEach(async () => {
    await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
  })
  const open = async (options: OrdersOptions): Promise<Receiver> => {
    const receiver = await openOrders(options)
    receivers.push(receiver)
    return receiver
  }
  const bench: Bench = {
    express,
    get store() {
      return store
    },
    get keeper() {
      return opened.store
    },
    start(handler, options = {}, more = {}) {
      store = watchedStore(opened.store)
      return open({ express, handler, store, options, ...more })
    },
    async startHeld(send, options) {
      const stage = makeStage()
      const handler: RequestHandler = async (request, response) => {
        stage.enter(response)
        await stage.left
        send(response, request)
      }
      return { ...stage, receiver: await bench.start(handler, options) }
    },
    startBare: (handler, more = {}) => open({ express, handler, ...more }),
  }
  return bench
}

/** Makes a stage: a handler calls `enter` and awaits `left`; its test awaits `entered` and calls `leave`. */
export function makeStage() {
  const { promise: entered, resolve: enter } = withResolvers<Response>()
  const { promise: left, resolve: leave } = withResolvers()
  return { enter, entered, left, leave }
}

export const problemOf = async (port: number, key: string): Promise<string | undefined> =>
  (await call(port, { key })).problem
