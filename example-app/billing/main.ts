import { addressFrom, apiKeyFrom, DEFAULT_PORTS, portOf } from '../environment.js'
import { launch } from '../launch.js'
import { assertPortsFree, listen } from '../listen.js'
import { explainingOptions, StartError } from '../start-error.js'
import { createBilling } from './billing.js'
import { createOrdersClient } from './orders-client.js'
import { createPlacedOrders } from './placed-orders.js'

await launch('billing', async () => {
  await assertPortsFree(['billing'])
  const port = portOf('billing')
  const coreUrl = addressFrom('IDENTITY_CORE_URL', `http://127.0.0.1:${DEFAULT_PORTS.identityCore}`)
  const issuer = addressFrom('ISSUER', `http://127.0.0.1:${DEFAULT_PORTS.issuer}`)
  const ordersUrl = addressFrom('ORDERS_URL', `http://127.0.0.1:${DEFAULT_PORTS.orders}`)
  const apiKey = apiKeyFrom('IDENTITY_CORE_API_KEY')
  const orders = explainingOptions(() => createOrdersClient({ coreUrl, issuer, apiKey, ordersUrl }))
  await orders.ready().catch(({ message }: Error) => {
    throw new StartError(`${message} (the identity core is ${coreUrl})`)
  })
  const { router: placedOrders } = createPlacedOrders({ issuer })
  const server = await listen(createBilling({ orders, placedOrders }), port)
  console.log(`billing: ${server.url}`)
  return server
})
