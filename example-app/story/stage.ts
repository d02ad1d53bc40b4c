import type { RequestListener } from 'node:http'
import type { DecisionObserver, DenylistOption, ServiceAuthPolicy } from 'express-service-auth'
import { tokenSource } from 'express-service-auth/client'
import { createTestCore, type TestCore } from 'express-service-auth/testing'
import { createBilling } from '../billing/billing.js'
import { createOrdersClient } from '../billing/orders-client.js'
import { createPlacedOrders } from '../billing/placed-orders.js'
import { atPort, EXAMPLE_API_KEY } from '../environment.js'
import { listen, type RunningServer } from '../listen.js'
import { notifyBilling } from '../orders/notify-billing.js'
import { type OpenStorage, openStorage } from '../orders/open-storage.js'
import type { Order } from '../orders/order.js'
import { createOrders } from '../orders/orders.js'
import { POLICY } from '../orders/policy.js'
import { openSessions } from '../orders/sessions.js'
import type { OrderBook } from '../orders/storage.js'
import { deniedCallers } from './denied-callers.js'
import { startSignIn } from './sign-in.js'

/** The three services, running in this process, and what the story and the page do to them. */
export interface Stage {
  readonly core: TestCore
  readonly ordersUrl: string
  readonly billingUrl: string
  readonly storeName: string
  /** Callers that orders shuts out while it runs. */
  readonly deniedCallers: Set<string>
  /** How many orders are on the books: the side effects. */
  countOrders(): Promise<number>
  /** A new token of the core. */
  tokenOf(caller: string, permissions: readonly string[], audience?: string): Promise<string>
  /** Logs a user in; returns the session's token. */
  sessionOf(user: string): string
  /** Another instance of orders on the same storage, which has not fetched a key set yet. */
  startOrders(changes?: Partial<ServiceAuthPolicy>): Promise<RunningServer>
  /** Lets billing lose the next answer of orders, after orders has done the work. */
  loseNextAnswer(): void
  /** Ends the connection of the next order before its COMMIT, where orders is on Postgres. */
  readonly cutNextCommit: (() => void) | undefined
  close(): Promise<void>
}

export interface StageOptions {
  /** What orders has decided, of each request. */
  readonly onDecision: DecisionObserver
  /** Stands around orders, to see which requests it gets. */
  readonly around?: (app: RequestListener) => RequestListener
}

/** An order that was there before the story begins. */
const FIRST_ORDER: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }

export async function setStage(options: StageOptions): Promise<Stage> {
  const { onDecision, around = (app) => app } = options
  const { issuer } = POLICY
  const apiKey = EXAMPLE_API_KEY
  const opened = await openStorage(console.error)
  await opened.storage.book.seed(FIRST_ORDER)
  const core = await atPort('CORE_PORT', (port) => createTestCore({ port, apiKey, issuer }))
  const jwksUri = `${core.url}/.well-known/jwks.json`
  const { storage, cutNextCommit } = cuttable(opened)
  const signIn = await startSignIn(issuer)
  const verifySession = openSessions({ coreUrl: signIn.url, issuer })
  const denied = deniedCallers()
  const denylist: DenylistOption = opened.denylist
    ? [opened.denylist, denied.denylist]
    : denied.denylist
  // Until it is read, orders refuses everybody with a 503.
  await opened.denylist?.ready?.()
  const policy = { ...POLICY, jwksUri, denylist, onDecision }

  const instances: { close(): void }[] = []
  async function startOrders(changes: Partial<ServiceAuthPolicy> = {}, port = 0) {
    const orders = createOrders({ policy: { ...policy, ...changes }, storage, verifySession })
    instances.push(orders)
    return listen(around(withProbes(orders.app, orders.health)), port)
  }
  const orders = await atPort('ORDERS_PORT', (port) => startOrders({}, port))

  const wire = lossyFetch()
  const client = { coreUrl: core.url, issuer, apiKey }
  const placed = createPlacedOrders({ issuer, jwksUri })
  const app = createBilling({
    orders: createOrdersClient({ ...client, ordersUrl: orders.url, fetch: wire.fetch }),
    placedOrders: placed.router,
  })
  const billing = await atPort('BILLING_PORT', (port) => listen(app, port))
  await opened.database?.outbox.deliver(notifyBilling({ ...client, billingUrl: billing.url }))

  return {
    core,
    ordersUrl: orders.url,
    billingUrl: billing.url,
    storeName: opened.name,
    deniedCallers: denied.callers,
    countOrders: storage.book.count,
    tokenOf: (sub, permissions, aud = 'orders') =>
      tokenSource({
        core: { baseUrl: core.url, apiKey },
        apiDomain: issuer,
        claims: { sub, aud, permissions, source: 'microservice', token_type: 'service-access' },
      }).token(),
    sessionOf: signIn.sessionOf,
    startOrders: (changes) => startOrders(changes),
    loseNextAnswer: wire.loseNextAnswer,
    cutNextCommit,
    async close() {
      await orders.close()
      for (const instance of instances) instance.close()
      placed.close()
      await opened.close()
      await Promise.all([billing.close(), core.close(), signIn.close()])
    },
  }
}

/** Puts `/livez` and `/readyz` before the app, as `serveUntilSignal` does for a process of its own. */
function withProbes(app: RequestListener, health: () => object): RequestListener {
  return (request, response) => {
    const { url } = request
    if (url === '/livez' || url === '/readyz') {
      response.end(JSON.stringify({ phase: 'ready', ...(url === '/readyz' && health()) }))
    } else app(request, response)
  }
}

/** A storage that can lose the connection of an order that is written, before it is committed. */
function cuttable({ storage, database }: OpenStorage) {
  if (database === undefined) return { storage, cutNextCommit: undefined }
  const { pool, store } = database
  let isCutting = false
  const book: OrderBook = {
    ...storage.book,
    async add(order, request) {
      await storage.book.add(order, request)
      if (!isCutting) return
      isCutting = false
      const transaction = store.transactionOf(request)
      const { rows } = await transaction.query('select pg_backend_pid() as pid')
      await pool.query('select pg_terminate_backend($1)', [rows[0].pid])
    },
  }
  const cutNextCommit = () => {
    isCutting = true
  }
  return { storage: { ...storage, book }, cutNextCommit }
}

function lossyFetch() {
  let isLosing = false
  const lossy: typeof globalThis.fetch = async (...request) => {
    const response = await fetch(...request)
    if (!isLosing) return response
    isLosing = false
    await response.text()
    throw new TypeError('the answer was lost on the way')
  }
  const loseNextAnswer = () => {
    isLosing = true
  }
  return { fetch: lossy, loseNextAnswer }
}
