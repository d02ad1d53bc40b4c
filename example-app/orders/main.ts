import { createServer } from 'node:http'
import { logDecisions } from 'express-service-auth'
import {
  addressFrom,
  atPort,
  EXAMPLE_API_KEY,
  explainingOptions,
  integerFrom,
  issuerFrom,
  textFrom,
  usualAddress,
} from '../environment.js'
import { launch } from '../launch.js'
import { bind } from '../listen.js'
import { jsonLines } from './json-lines.js'
import { notifyBilling } from './notify-billing.js'
import { openStorage } from './open-storage.js'
import { createOrders } from './orders.js'
import { POLICY } from './policy.js'
import { serveUntilSignal } from './serve-until-signal.js'
import { openSessions } from './sessions.js'

const MAX_SHUTDOWN_MS = 600_000

await launch('orders', async () => {
  const coreUrl = addressFrom('CORE_URL', usualAddress('CORE_PORT'))
  const apiKey = textFrom('CORE_API_KEY') ?? EXAMPLE_API_KEY
  const billingUrl = addressFrom('BILLING_URL', usualAddress('BILLING_PORT'))
  const warn = (warning: string) => console.error(`orders: ${warning}`)
  const opened = await openStorage(warn, { goesOnWithoutRedis: true })
  const { storage, denylist, database } = opened

  const policy = { ...POLICY, ...issuerFrom(coreUrl, POLICY.issuer), denylist }
  const verifySession = openSessions({ coreUrl, issuer: policy.issuer })
  const orders = explainingOptions(() => createOrders({ policy, storage, verifySession }))
  const notify = explainingOptions(() =>
    notifyBilling({ coreUrl, issuer: policy.issuer, apiKey, billingUrl }),
  )
  await database?.outbox.deliver(notify)
  logDecisions(jsonLines)
  const server = createServer()
  serveUntilSignal(server, {
    ...orders,
    close() {
      orders.close()
      return opened.close()
    },
    serveOnMs: integerFrom('ORDERS_SERVE_ON_MS', { max: MAX_SHUTDOWN_MS }),
    waitMs: integerFrom('ORDERS_WAIT_MS', { max: MAX_SHUTDOWN_MS }),
  })
  const url = await atPort('ORDERS_PORT', (port) => bind(server, port))
  console.log(`orders: ${url} (store: ${opened.name})`)
  return undefined
})
