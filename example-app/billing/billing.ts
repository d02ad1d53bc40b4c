import express, { type ErrorRequestHandler, type RequestHandler, type Response } from 'express'
import type { OrdersAnswer, OrdersClient } from './orders-client.js'

const INVOICE_ID = /^[\w-]{1,64}$/

/** What billing answers when orders does not do as asked; 502 for everything else. */
const STATUS_FOR: Record<number, number> = { 400: 400, 404: 404, 422: 409, 503: 503 }

export interface BillingOptions {
  readonly orders: OrdersClient
  /** Where orders sends the orders that were placed. */
  readonly placedOrders?: RequestHandler
}

/** The caller: every invoice becomes one order, however often it is put. */
export function createBilling({ orders, placedOrders }: BillingOptions) {
  const app = express().disable('x-powered-by')
  if (placedOrders) app.use(placedOrders)
  app.use(express.json())

  app.put('/invoices/:id', async (req, res) => {
    const { id } = req.params
    if (!INVOICE_ID.test(id)) {
      res.status(400).json({ error: 'malformed invoice id' })
      return
    }
    const { item, quantity } = req.body ?? {}
    // Derived from the invoice, not random: after a crash the retry finds the same key.
    const answer = await orders.create({ item, quantity }, `invoice-${id}`)
    const { body: order, attempts, isReplay } = answer
    if (answer.status === 201) res.json({ invoice: id, order, attempts, isReplay })
    else passOn(res, answer)
  })

  app.get('/orders/:id', async (req, res) => {
    const answer = await orders.read(req.params.id)
    if (answer.status === 200) res.json(answer.body)
    else passOn(res, answer)
  })

  app.use(answerFault)
  return app
}

function passOn(res: Response, { status, attempts }: OrdersAnswer): void {
  res.status(STATUS_FOR[status] ?? 502).json({ error: `orders answered ${status}`, attempts })
}

/** The core or orders did not answer at all, or the request is not JSON. */
const answerFault: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent) next(error)
  else if (error.status === 400) res.status(400).json({ error: 'malformed JSON' })
  else res.status(502).json({ error: 'no answer from the identity core or orders' })
}
