import {
  addressFrom,
  atPort,
  EXAMPLE_API_KEY,
  explainingOptions,
  issuerFrom,
  StartError,
  textFrom,
  usualAddress,
} from '../environment.js'
import { launch } from '../launch.js'
import { listen } from '../listen.js'
import { POLICY } from '../orders/policy.js'
import { createBilling } from './billing.js'
import { createOrdersClient } from './orders-client.js'
import { createPlacedOrders } from './placed-orders.js'

await launch('billing', async () => {
  const coreUrl = addressFrom('CORE_URL', usualAddress('CORE_PORT'))
  const ordersUrl = addressFrom('ORDERS_URL', usualAddress('ORDERS_PORT'))
  const issuerAndKeys = issuerFrom(coreUrl, POLICY.issuer)
  const { issuer } = issuerAndKeys
  const apiKey = textFrom('CORE_API_KEY') ?? EXAMPLE_API_KEY
  const orders = explainingOptions(() => createOrdersClient({ coreUrl, issuer, apiKey, ordersUrl }))
  await orders.ready().catch(({ message }: Error) => {
    throw new StartError(`${message} (the core is ${coreUrl})`)
  })
  const { router: placedOrders } = createPlacedOrders(issuerAndKeys)
  const app = createBilling({ orders, placedOrders })
  const server = await atPort('BILLING_PORT', (port) => listen(app, port))
  console.log(`billing: ${server.url}`)
  return server
})
