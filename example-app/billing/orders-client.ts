import { reportOf, serviceFetch, tokenSource } from 'express-service-auth/client'

export interface NewOrder {
  readonly item: string
  readonly quantity: number
}

export interface OrdersAnswer {
  readonly status: number
  readonly body: unknown
  /** Whether an earlier attempt had done the work, and this is its stored result. */
  readonly isReplay: boolean
  readonly attempts: number
}

export interface OrdersClient {
  /** Resolves when the core has made a token. @throws TokenSourceError when it has not. */
  ready(): Promise<void>
  read(id: string): Promise<OrdersAnswer>
  /** `operation` names what is done once, whatever the number of attempts. */
  create(order: NewOrder, operation: string): Promise<OrdersAnswer>
}

export interface OrdersClientOptions {
  readonly coreUrl: string
  /** The API domain: the `iss` of tokens. */
  readonly issuer: string
  readonly apiKey: string
  readonly ordersUrl: string
  /** For the calls of orders. */
  readonly fetch?: typeof globalThis.fetch
}

/** Calls orders, and calls again while it is safe. */
export function createOrdersClient(options: OrdersClientOptions): OrdersClient {
  const { coreUrl, issuer, apiKey, ordersUrl, fetch } = options
  const tokensFor = (permission: string, { singleUse }: { singleUse: boolean }) =>
    tokenSource({
      core: { baseUrl: coreUrl, apiKey },
      apiDomain: issuer,
      claims: {
        aud: 'orders',
        sub: 'billing',
        source: 'microservice',
        token_type: 'service-access',
        permissions: [permission],
      },
      singleUse,
    })
  const reading = tokensFor('orders:read', { singleUse: false })
  // Orders takes the token of a write once, so every attempt has its own.
  const writing = tokensFor('orders:write', { singleUse: true })
  const calling = { origins: [ordersUrl], fetch }
  const readFetch = serviceFetch(reading, calling)
  const writeFetch = serviceFetch(writing, calling)

  return {
    ready: reading.ready,
    read: async (id) => answerOf(await readFetch(`${ordersUrl}/orders/${encodeURIComponent(id)}`)),
    create: async (order, operation) =>
      answerOf(
        await writeFetch(`${ordersUrl}/orders`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': `"${operation}"` },
          body: JSON.stringify(order),
        }),
      ),
  }
}

async function answerOf(response: Response): Promise<OrdersAnswer> {
  const { attempts, replayed } = reportOf(response)
  const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '')
  const body: unknown = await (isJson ? response.json() : response.text())
  return { status: response.status, body, isReplay: replayed, attempts: attempts.length }
}
