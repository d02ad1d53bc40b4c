import { tokenSource } from 'express-service-auth/client'
import supertokens from 'supertokens-node'
import session from 'supertokens-node/recipe/session'
import { createBilling } from '../billing/billing.js'
import { createOrdersClient } from '../billing/orders-client.js'
import { createPlacedOrders } from '../billing/placed-orders.js'
import { type IdentityCore, startIdentityCore } from '../identity-core/identity-core.js'
import { listen, type RunningServer } from '../listen.js'
import { notifyBilling } from '../orders/notify-billing.js'
import { type Addresses, openPersistence } from '../orders/open-persistence.js'
import type { Order } from '../orders/order.js'
import { createOrders } from '../orders/orders.js'
import { openSessions } from '../orders/sessions.js'
import { cutting } from './cut-connection.js'
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
  /** How many orders are on the books: the side effects. */
  countOrders(): Promise<number>
  tokenOf(caller: string, permissions: readonly string[], audience?: string): Promise<string>
  /** Logs a user in, as the service that frontends talk to does; resolves with the session's token. */
  sessionOf(user: string): Promise<string>
  /** Another instance of orders, which has not fetched a key set yet. */
  startFreshReceiver(): Promise<RunningServer>
  /** Lets billing lose the next answer of orders, after orders has done the work. */
  loseNextAnswer(): void
  /** Ends the connection of the next order before its COMMIT, where orders is on Postgres. */
  readonly cutNextCommit: (() => void) | undefined
  close(): Promise<void>
}

export interface StageOptions {
  readonly ports: Readonly<Record<'identityCore' | 'issuer' | 'orders' | 'billing', number>>
  readonly apiKey: string
  readonly addresses: Addresses
  readonly operator: Operator
}

/** An order that was there before the story begins. */
const FIRST_ORDER: Order = { id: 'o-1', item: 'chair', quantity: 4, orderedBy: 'billing' }

export async function setStage({
  ports,
  apiKey,
  addresses,
  operator,
}: StageOptions): Promise<Stage> {
  const opened = await openPersistence(addresses, { warn: console.error })
  const { denylist, name: storeName, postgres } = opened
  const core = await startIdentityCore({
    port: ports.identityCore,
    issuerPort: ports.issuer,
    apiKey,
  })
  const { url: coreUrl, issuer } = core
  await opened.persistence.book.seed(FIRST_ORDER)
  const wrapped = postgres && cutting(opened.persistence.book, postgres)
  const book = wrapped?.book ?? opened.persistence.book
  const persistence = { ...opened.persistence, book }
  const { onDecision } = operator
  const verifySession = openSessions({ coreUrl, issuer, apiKey })
  const receiver = { ...persistence, issuer, denylist, verifySession, onDecision }
  const orders = createOrders(receiver)
  await orders.ready()
  const ordersServer = await listen(withProbes(orders.app, orders.health), ports.orders)

  const wire = lossyFetch()
  const client = { coreUrl, issuer, apiKey, ordersUrl: ordersServer.url, fetch: wire.fetch }
  const placed = createPlacedOrders({ issuer })
  const billing = createBilling({ orders: createOrdersClient(client), placedOrders: placed.router })
  const billingServer = await listen(billing, ports.billing)
  const options = { coreUrl, issuer, apiKey, billingUrl: billingServer.url }
  await postgres?.outbox.deliver(notifyBilling(options))

  return {
    core,
    ordersUrl: ordersServer.url,
    billingUrl: billingServer.url,
    storeName,
    isOnRedis: denylist !== undefined,
    countOrders: book.count,
    tokenOf: (sub, permissions, aud = 'orders') =>
      tokenSource({
        core: { baseUrl: coreUrl, apiKey },
        apiDomain: issuer,
        claims: { sub, aud, permissions, source: 'microservice', token_type: 'service-access' },
      }).token(),
    sessionOf,
    async startFreshReceiver() {
      const fresh = createOrders(receiver)
      const server = await listen(fresh.app, 0)
      return { url: server.url, close: () => server.close().finally(fresh.close) }
    },
    loseNextAnswer: wire.loseNextAnswer,
    cutNextCommit: wrapped?.cutNextCommit,
    async close() {
      await ordersServer.close()
      await opened.close()
      await Promise.all([billingServer.close(), core.close()])
      orders.close()
      placed.close()
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
