import { setTimeout as delay } from 'node:timers/promises'
import type { TokenSource } from './token-source.js'

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
  read(id: string): Promise<OrdersAnswer>
  /** `operation` names what is done once, whatever the number of attempts. */
  create(order: NewOrder, operation: string): Promise<OrdersAnswer>
}

export interface OrdersClientOptions {
  readonly ordersUrl: string
  readonly tokens: TokenSource
  readonly fetch?: typeof globalThis.fetch
}

const MAX_ATTEMPTS = 4
const TIMEOUT_MS = 5000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5000

/** Calls orders, and calls again while it is safe: with the same key and a fresh token. */
export function createOrdersClient(options: OrdersClientOptions): OrdersClient {
  const { ordersUrl, tokens, fetch = globalThis.fetch } = options

  async function attempt(permission: string, path: string, request: RequestInit) {
    // The receiver takes a token once, so every attempt has its own.
    const token = await tokens.mint([permission])
    return exchange(fetch, `${ordersUrl}${path}`, {
      ...request,
      headers: { ...request.headers, authorization: `Bearer ${token}` },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  }

  return {
    read: (id) => retry(() => attempt('orders:read', `/orders/${encodeURIComponent(id)}`, {})),
    create: (order, operation) =>
      retry(() =>
        attempt('orders:write', '/orders', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': `"${operation}"` },
          body: JSON.stringify(order),
        }),
      ),
  }
}

type Exchange = Pick<OrdersAnswer, 'status' | 'body'> & { readonly headers: Headers }

/** One exchange; `undefined` where no whole answer came, so that nobody knows if work was done. */
async function exchange(
  fetch: typeof globalThis.fetch,
  url: string,
  request: RequestInit,
): Promise<Exchange | undefined> {
  try {
    const response = await fetch(url, request)
    const { status, headers } = response
    return { status, headers, body: await readBody(response) }
  } catch {
    return undefined
  }
}

async function retry(attempt: () => Promise<Exchange | undefined>): Promise<OrdersAnswer> {
  for (let attempts = 1; ; attempts += 1) {
    const answer = await attempt()
    const isLast = attempts === MAX_ATTEMPTS
    if (answer && (isLast || !isWorthRetrying(answer))) {
      const isReplay = answer.headers.get('idempotent-replayed') === 'true'
      return { status: answer.status, body: answer.body, isReplay, attempts }
    }
    if (isLast) throw new Error(`no answer to ${attempts} attempts`)
    await delay(pauseMs(attempts, answer))
  }
}

/** Out of reach for a moment, or an earlier attempt that is still running. */
function isWorthRetrying({ status, headers }: Exchange): boolean {
  return (status === 503 || status === 409) && headers.has('retry-after')
}

function pauseMs(attempts: number, answer: Exchange | undefined): number {
  const askedMs = Number(answer?.headers.get('retry-after') ?? 0) * 1000
  const ownMs = FIRST_PAUSE_MS * 2 ** (attempts - 1)
  // `Retry-After` may be a date, which is no number: then the pause is our own.
  return Math.min(Math.max(askedMs || 0, ownMs), LONGEST_PAUSE_MS)
}

async function readBody(response: Response): Promise<unknown> {
  const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '')
  return isJson ? response.json() : response.text()
}
