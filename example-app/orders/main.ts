import { createServer } from 'node:http'
import { logDecisions } from 'express-service-auth'
import {
  addressFrom,
  apiKeyFrom,
  DEFAULT_PORTS,
  integerFrom,
  portOf,
  textFrom,
} from '../environment.js'
import { launch } from '../launch.js'
import { assertPortsFree, bind } from '../listen.js'
import { explainingOptions } from '../start-error.js'
import { jsonLines } from './json-lines.js'
import { notifyBilling } from './notify-billing.js'
import { openPersistence } from './open-persistence.js'
import { createOrders } from './orders.js'
import { POLICY } from './policy.js'
import { serveUntilSignal } from './serve-until-signal.js'
import { openSessions } from './sessions.js'

const MAX_SHUTDOWN_MS = 600_000

await launch('orders', async () => {
  await assertPortsFree(['orders'])
  const port = portOf('orders')
  const issuer = addressFrom('ISSUER', POLICY.issuer)
  const coreUrl = addressFrom('IDENTITY_CORE_URL', `http://127.0.0.1:${DEFAULT_PORTS.identityCore}`)
  const serveOnMs = integerFrom('ORDERS_SERVE_ON_MS', 5000, { min: 0, max: MAX_SHUTDOWN_MS })
  const waitMs = integerFrom('ORDERS_WAIT_MS', 20_000, { min: 0, max: MAX_SHUTDOWN_MS })
  const billingUrl = addressFrom('BILLING_URL', `http://127.0.0.1:${DEFAULT_PORTS.billing}`)
  const apiKey = apiKeyFrom('IDENTITY_CORE_API_KEY')
  const addresses = { databaseUrl: textFrom('DATABASE_URL'), redisUrl: textFrom('REDIS_URL') }
  const complain = (complaint: string) => console.error(`orders: ${complaint}`)
  const opened = await openPersistence(addresses, { warn: complain, goOnWithout: complain })
  const { persistence, denylist, postgres } = opened
  const verifySession = openSessions({ coreUrl, issuer })
  const { app, ready, health, ...policy } = explainingOptions(() =>
    createOrders({ ...persistence, issuer, denylist, verifySession }),
  )
  const notify = explainingOptions(() => notifyBilling({ coreUrl, issuer, apiKey, billingUrl }))
  await postgres?.outbox.deliver(notify)
  logDecisions(jsonLines)
  const server = createServer()
  serveUntilSignal(server, {
    app,
    ready,
    health,
    close() {
      policy.close()
      return opened.close()
    },
    serveOnMs,
    waitMs,
  })
  console.log(`orders: ${await bind(server, port)} (store: ${opened.name})`)
  return undefined
})
