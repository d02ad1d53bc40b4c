import { tokenSource } from 'express-service-auth/client'
import supertokens from 'supertokens-node'
import session from 'supertokens-node/recipe/session'
import { createBilling } from '../billing/billing.js'
import { createOrdersClient } from '../billing/orders-client.js'
import { type IdentityCore, startIdentityCore } from '../identity-core/identity-core.js'
import { listen, type RunningServer } from '../listen.js'
import { openStore } from '../orders/open-store.js'
import type { Order } from '../orders/order.js'
import { createOrders } from '../orders/orders.js'
import { openSessions } from '../orders/sessions.js'
import type { Operator } from './operator.js'
import { withProbes } from './probes.js'

/** The three services, running in this process, and what the story does to them. */
export interface Stage {
  readonly core: IdentityCore
  readonly ordersUrl: string
  readonly billingUrl: string
  readonly storeName: string
  /** Whether its store and its denylist are in Redis, within reach of `service-auth`. */
  readonly isOnRedis: boolean
  /** What orders has on its books: the side effects. */
  readonly book: ReadonlyMap<string, Order>
  tokenOf(caller: string, permissions: readonly string[], audience?: string): Promise<string>
  /** Logs a user in, as the service that frontends talk to does; resolves with the session's token. */
  sessionOf(user: string): Promise<string>
  /** Another instance of orders, which has not fetched a key set yet. */
  startFreshReceiver(): Promise<RunningServer>
  /** Lets billing lose the next answer of orders, after orders has done the work. */
  loseNextAnswer(): void
  close(): Promise<void>
}

export interface StageOptions {
  readonly ports: Readonly<Record<'identityCore' | 'orders' | 'billing', number>>
  readonly apiKey: string
  readonly redisUrl: string | undefined
  readonly operator: Operator
}

/** An order that was there before the story begins. */
const FIRST_ORDER: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }

export async function setStage({
  ports,
  apiKey,
  redisUrl,
  operator,
}: StageOptions): Promise<Stage> {
  const { store, denylist, name: storeName, close: closeStore } = await openStore(redisUrl)
  const core = await startIdentityCore({ port: ports.identityCore, apiKey })
  const book = new Map([[FIRST_ORDER.id, FIRST_ORDER]])
  const { onDecision } = operator
  const verifySession = openSessions({ coreUrl: core.url, apiKey })
  const receiver = { issuer: core.url, store, denylist, verifySession, orders: book, onDecision }
  const orders = createOrders(receiver)
  await orders.ready()
  const ordersServer = await listen(withProbes(orders.app, orders.health), ports.orders)

  const wire = lossyFetch()
  const client = { coreUrl: core.url, apiKey, ordersUrl: ordersServer.url, fetch: wire.fetch }
  const billing = createBilling({ orders: createOrdersClient(client) })
  const billingServer = await listen(billing, ports.billing)

  return {
    core,
    ordersUrl: ordersServer.url,
    billingUrl: billingServer.url,
    storeName,
    isOnRedis: denylist !== undefined,
    book,
    tokenOf: (sub, permissions, aud = 'orders') =>
      tokenSource({
        core: { baseUrl: core.url, apiKey },
        apiDomain: core.url,
        claims: { sub, aud, permissions, source: 'microservice', token_type: 'service-access' },
      }).token(),
    sessionOf,
    async startFreshReceiver() {
      const fresh = createOrders(receiver)
      const server = await listen(fresh.app, 0)
      return { url: server.url, close: () => server.close().finally(fresh.close) }
    },
    loseNextAnswer: wire.loseNextAnswer,
    async close() {
      await Promise.all([billingServer.close(), ordersServer.close(), core.close()])
      orders.close()
      closeStore()
    },
  }
}

async function sessionOf(user: string): Promise<string> {
  const id = supertokens.convertToRecipeUserId(user)
  const made = await session.createNewSessionWithoutRequestResponse('public', id)
  return made.getAccessToken()
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
