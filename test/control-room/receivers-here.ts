import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type DecisionEvent,
  type IdempotencyEvent,
  type LiveDenylist,
  memoryStore,
  type Store,
} from 'express-service-auth'
import type { NewEvent, ReceiverReport, Receivers } from '../../example-app/control-room/ports.js'
import {
  type Outcome,
  RECEIVERS,
  type ReceiverName,
  type ReceiverState,
} from '../../example-app/control-room/protocol.js'
import { levelOf } from '../../example-app/control-room/receivers/child/levels.js'
import { listen, type RunningServer } from '../../example-app/listen.js'
import type { Order } from '../../example-app/orders/order.js'
import { createOrders } from '../../example-app/orders/orders.js'
import { leasedPersistence } from '../../example-app/orders/persistence.js'

const FIRST_ORDER: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }

/** Two receivers in this process, behind the port that the room's callers know them by. */
export interface ReceiversHere extends Pick<Receivers, 'urlOf' | 'tlsOf' | 'orders' | 'states'> {
  readonly store: Store
  /** How many requests have come. */
  requests(): number
  /** Stops serving, as a receiver that was killed. */
  stop(receiver: ReceiverName): Promise<void>
  close(): Promise<void>
}

interface Options {
  readonly issuer: string
  readonly onReport: (report: ReceiverReport) => void
  readonly denylist?: LiveDenylist
  /** Stands before the store: one that fails, say. */
  readonly wrapStore?: (store: Store) => Store
}

interface Sent {
  readonly receiver: ReceiverName
  readonly call?: string | undefined
  readonly verdicts: (DecisionEvent | IdempotencyEvent)[]
}

const TELL_MS = 10

export async function startReceiversHere(options: Options): Promise<ReceiversHere> {
  const { issuer, denylist, wrapStore = (store) => store } = options
  const sent = new AsyncLocalStorage<Sent>()
  const books = new Map([[FIRST_ORDER.id, FIRST_ORDER]])
  const memory = memoryStore()
  const store = wrapStore(memory)
  const reporter = createReporter(options.onReport)
  let requests = 0
  const stopListening = listenToChannels(sent, reporter)
  const opened = await Promise.all(
    RECEIVERS.map(async (receiver) => {
      const orders = createOrders({
        ...leasedPersistence(store, books),
        issuer,
        denylist,
        // Nobody sends a session here.
        verifySession: (_req: unknown, _res: unknown, next: () => void) => next(),
      } as unknown as Parameters<typeof createOrders>[0])
      await orders.ready()
      const server = await listen((req, res) => {
        requests += 1
        const call = req.headers['x-room-call'] as string | undefined
        const context = { receiver, call, verdicts: [] }
        tellEnd(context, res, reporter)
        sent.run(context, () => orders.app(req as IncomingMessage & never, res as never))
      }, 0)
      return { receiver, orders, server }
    }),
  )
  const serverOf = (name: ReceiverName): RunningServer =>
    opened.find(({ receiver }) => receiver === name)?.server as RunningServer
  const stopped = new Set<ReceiverName>()
  return {
    store,
    urlOf: (receiver) => serverOf(receiver).url,
    tlsOf() {
      throw new Error('there is no TLS here')
    },
    orders: () => books.size,
    requests: () => requests,
    states: () =>
      RECEIVERS.map((name) => ({
        name,
        phase: stopped.has(name) ? 'killed' : 'ready',
      })) as ReceiverState[],
    async stop(receiver) {
      stopped.add(receiver)
      await serverOf(receiver).close()
    },
    async close() {
      stopListening()
      await Promise.all(opened.map(({ server }) => server.close()))
      for (const { orders } of opened) orders.close()
      memory.close()
    },
  }
}

type Reporter = (receiver: ReceiverName, add: (batch: Batch) => void) => void

interface Batch {
  readonly events: NewEvent[]
  readonly requests: ReceiverReport['requests'][number][]
}

/** Tells in batches, as a process of its own does. */
function createReporter(onReport: (report: ReceiverReport) => void): Reporter {
  const batches = new Map<ReceiverName, Batch>()
  return (receiver, add) => {
    const batch = batches.get(receiver) ?? { events: [], requests: [] }
    add(batch)
    if (batches.has(receiver)) return
    batches.set(receiver, batch)
    setTimeout(() => {
      batches.delete(receiver)
      onReport({ receiver, ...batch, storeCalls: [], cache: { hits: 0, misses: 0 } })
    }, TELL_MS)
  }
}

function listenToChannels(sent: AsyncLocalStorage<Sent>, reporter: Reporter): () => void {
  const listeners = (['decision', 'idempotency'] as const).map((channel) => {
    const listener = (message: unknown) => {
      const context = sent.getStore()
      if (context === undefined) return
      const event = message as DecisionEvent | IdempotencyEvent
      context.verdicts.push(event)
      const level = levelOf(event)
      const title = 'reason' in event ? event.reason : event.outcome
      const { receiver, call } = context
      const known = { at: Date.now(), receiver, channel, level, title, event } as const
      reporter(receiver, ({ events }) => events.push({ ...known, ...(call && { call }) }))
    }
    subscribe(`express-service-auth:${channel}`, listener)
    return () => unsubscribe(`express-service-auth:${channel}`, listener)
  })
  return () => {
    for (const stop of listeners) stop()
  }
}

function tellEnd(context: Sent, res: ServerResponse, reporter: Reporter): void {
  const startedAt = performance.now()
  res.once('close', () => {
    const { receiver, call, verdicts } = context
    const outcome = outcomeOf(verdicts, res)
    const milliseconds = performance.now() - startedAt
    const ended = { receiver, outcome, milliseconds, ...(call && { call }) }
    reporter(receiver, ({ requests }) => requests.push(ended))
  })
}

function outcomeOf(verdicts: Sent['verdicts'], res: ServerResponse): Outcome {
  const ending = verdicts.find(({ outcome }) => outcome !== 'accepted')
  if (ending) return ending.outcome
  if (!res.writableFinished || res.statusCode >= 500) return 'failed'
  const isReplay = verdicts.some((event) => 'reason' in event && event.reason === 'replayed')
  return isReplay ? 'replayed' : 'accepted'
}
