import { createServer } from 'node:http'
import { logDecisions } from 'express-service-auth'
import { addressFrom, DEFAULT_PORTS, integerFrom, portFrom, textFrom } from '../environment.js'
import { launch } from '../launch.js'
import { bind } from '../listen.js'
import { explainingOptions } from '../start-error.js'
import { jsonLines } from './json-lines.js'
import { openStore } from './open-store.js'
import { createOrders } from './orders.js'
import { POLICY } from './policy.js'
import { serveUntilSignal } from './serve-until-signal.js'
import { openSessions } from './sessions.js'

const MAX_SHUTDOWN_MS = 600_000

await launch('orders', async () => {
  const port = portFrom('ORDERS_PORT', DEFAULT_PORTS.orders)
  const issuer = addressFrom('IDENTITY_CORE_URL', POLICY.issuer)
  const serveOnMs = integerFrom('ORDERS_SERVE_ON_MS', 5000, { min: 0, max: MAX_SHUTDOWN_MS })
  const waitMs = integerFrom('ORDERS_WAIT_MS', 20_000, { min: 0, max: MAX_SHUTDOWN_MS })
  const opened = await openStore(textFrom('REDIS_URL'), (complaint) => {
    console.error(`orders: ${complaint}`)
  })
  const { store, denylist } = opened
  const verifySession = openSessions({ coreUrl: issuer })
  const { app, ready, health, ...policy } = explainingOptions(() =>
    createOrders({ issuer, store, denylist, verifySession }),
  )
  logDecisions(jsonLines)
  const server = createServer()
  serveUntilSignal(server, {
    app,
    ready,
    health,
    close() {
      policy.close()
      opened.close()
    },
    serveOnMs,
    waitMs,
  })
  console.log(`orders: ${await bind(server, port)} (store: ${opened.name})`)
  return undefined
})
