import { addressFrom, DEFAULT_PORTS, portFrom, textFrom } from '../environment.js'
import { launch } from '../launch.js'
import { listen } from '../listen.js'
import { StartError } from '../start-error.js'
import { openStore } from './open-store.js'
import { createOrders, type OrdersOptions } from './orders.js'

await launch('orders', async () => {
  const port = portFrom('ORDERS_PORT', DEFAULT_PORTS.orders)
  const issuer = addressFrom('IDENTITY_CORE_URL', `http://127.0.0.1:${DEFAULT_PORTS.identityCore}`)
  const { store, name, close } = await openStore(textFrom('REDIS_URL'))
  const orders = openOrders(issuer, store)
  await orders.ready().catch((error: Error) => {
    throw new StartError(`cannot start without the identity core at ${issuer}: ${error.message}`)
  })
  const server = await listen(orders.app, port)
  console.log(`orders: ${server.url} (store: ${name})`)
  return {
    async close() {
      await server.close()
      orders.close()
      close()
    },
  }
})

/** An address that the policy refuses is a mistake of whoever has set it: one line says so. */
function openOrders(issuer: string, store: OrdersOptions['store']) {
  try {
    return createOrders({
      issuer,
      store,
      onDecision: (event) => console.log(JSON.stringify(event)),
    })
  } catch (error) {
    if (error instanceof TypeError) throw new StartError(error.message)
    throw error
  }
}
