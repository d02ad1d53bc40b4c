import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Stage } from './stage.js'
import type { Answer } from './step.js'

export interface Caller {
  read(token: string, ordersUrl?: string): Promise<Answer>
  /** Asks the endpoint that takes services and users. */
  track(credentials: Readonly<Record<string, string>>): Promise<Answer>
  create(write: { token: string; key?: string; quantity?: number }): Promise<Answer>
  putInvoice(invoice: string): Promise<Answer>
  /** Asks billing how often it has taken an order in; waits until it has. */
  placedOrder(id: string): Promise<Answer>
}

/** The requests of the story, one attempt each, so that every answer can be shown. */
export function callerOf({ ordersUrl, billingUrl }: Stage): Caller {
  return {
    read: (token, receiverUrl = ordersUrl) =>
      send(`${receiverUrl}/orders/o-1`, { headers: { authorization: `Bearer ${token}` } }),
    track: (headers) => send(`${ordersUrl}/orders/o-1/tracking`, { headers }),
    create: ({ token, key = randomUUID(), quantity = 1 }) =>
      send(`${ordersUrl}/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'idempotency-key': `"${key}"`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ item: 'lamp', quantity }),
      }),
    putInvoice: (invoice) =>
      send(`${billingUrl}/invoices/${invoice}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ item: 'desk', quantity: 1 }),
      }),
    placedOrder: (id) => onceThere(() => send(`${billingUrl}/placed-orders/${id}`, {})),
  }
}

const POLL_MS = 50
const MAX_POLLS = 400

async function onceThere(ask: () => Promise<Answer>): Promise<Answer> {
  for (let polls = 1; polls < MAX_POLLS; polls += 1) {
    const answer = await ask()
    if (answer.status !== 404) return answer
    await delay(POLL_MS)
  }
  return ask()
}

async function send(url: string, request: RequestInit): Promise<Answer> {
  const response = await fetch(url, request)
  return { status: response.status, headers: response.headers, text: await response.text() }
}
