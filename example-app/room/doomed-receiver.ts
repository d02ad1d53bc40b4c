import type { ServiceAuthPolicy } from 'express-service-auth'
import { listen } from '../listen.js'
import { openStorage } from '../orders/open-storage.js'
import { createOrders } from '../orders/orders.js'

/**
 * An instance of orders in a process of its own, whose writes never end: the parent kills it in the middle of one. It
 * shares the Redis of `REDIS_URL` with the other instances, and so the record of the write.
 */
const policy: ServiceAuthPolicy = JSON.parse(process.argv[2] ?? '')
const { storage } = await openStorage(console.error)
const book = {
  ...storage.book,
  add(): Promise<void> {
    process.send?.('in the write')
    return new Promise(() => undefined)
  },
}
const orders = createOrders({
  policy,
  storage: { ...storage, book },
  verifySession: (_request, response) => void response.sendStatus(401),
})
await orders.ready()
const { url } = await listen(orders.app)
process.send?.(url)
process.on('disconnect', () => process.exit())
