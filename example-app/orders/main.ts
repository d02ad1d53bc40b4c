import { addressFrom, DEFAULT_PORTS, portFrom, textFrom } from '../environment.js'
import { launch } from '../launch.js'
import { listen } from '../listen.js'
import { StartError } from '../start-error.js'
import { openStore } from './open-store.js'
import { createOrders } from './orders.js'

await launch('orders', async () => {
  const port = portFrom('ORDERS_PORT', DEFAULT_PORTS.orders)
  const issuer = addressFrom('IDENTITY_CORE_URL', `http://127.0.0.1:${DEFAULT_PORTS.identityCore}`)
  const { store, name, close } = await openStore(textFrom('REDIS_URL'))
  const orders = createOrders({
    issuer,
    store,
    onDecision: (event) => console.log(JSON.stringify(event)),
  })
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
