import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { remoteKeySet } from 'express-service-auth'
import { bind } from '../../../listen.js'
import { createOrders } from '../../../orders/orders.js'
import { openSessions } from '../../../orders/sessions.js'
import { createCalls } from '../ipc/calls.js'
import { createLent } from '../ipc/parent-store.js'
import type { Beginning, ToReceiver } from '../messages.js'
import { createGate } from './gate.js'
import { watchHealth } from './health.js'
import { openShared } from './open-shared.js'
import { send } from './parent.js'
import { heldPersistence } from './persistence.js'
import { createReporter } from './reporter.js'
import { watchChannels } from './watch-channels.js'
import { witnessed } from './witness.js'

/** Short, so that a visitor sees what becomes of a key set while the core is down. */
const KEY_SET_SECONDS = { refreshSeconds: 10, maxStaleSeconds: 40 }
/** Milliseconds for which a receiver waits for its key set and its store before it serves without. */
const READY_WITHIN_MS = 1000
/** Whoever was killed may have left connections that still hold the port. */
const BIND_ATTEMPTS = 20
const BIND_AGAIN_MS = 100

/** Serves orders, and reports everything on the package's channels to the parent. */
export async function serveAsReceiver(
  beginning: Beginning,
  listen: (receive: (message: ToReceiver) => void) => void,
): Promise<void> {
  const { receiver, coreUrl, issuer, apiKey, ports, certificate } = beginning
  const gate = createGate((state) => {
    // Whoever sees that a write is held may kill this process at once.
    reporter.flush()
    send({ type: 'gate', gate: state })
  })
  const lent = createLent()
  const calls = createCalls(send, { ...lent.handlers, ...gate.handlers })
  const shared = openShared(beginning, { calls, lent })
  listen((message) => {
    if (message.type === 'denied') shared.receive(message.denied)
    else calls.receive(message)
  })

  const { store, denylist } = shared
  const server = createServer()
  // Whoever has a certificate may connect: the token says whose it must be.
  const tlsServer = createTlsServer({
    ...certificate,
    requestCert: true,
    rejectUnauthorized: false,
  })
  const url = await bindAgain(server, ports[0])
  const tlsUrl = (await bindAgain(tlsServer, ports[1])).replace('http:', 'https:')
  const { app, ready, health } = createOrders({
    ...heldPersistence({ calls, gate, store, leaseSeconds: beginning.leaseSeconds }),
    issuer,
    keySet: remoteKeySet({ jwksUri: `${issuer}/auth/jwt/jwks.json`, ...KEY_SET_SECONDS }),
    denylist,
    verifySession: openSessions({ coreUrl, issuer, apiKey }),
    senderConstraint: { mtls: true, dpop: { baseUrls: [url] } },
  })
  const read = () =>
    health() as ReturnType<typeof health> & { store: ReturnType<typeof store.health> }
  const reporter = createReporter(send, () => read().tokenCache)
  watchChannels(receiver, reporter)
  const handler = witnessed(app, receiver, reporter)
  for (const each of [server, tlsServer]) each.on('request', handler)
  await Promise.race([Promise.allSettled([ready(), store.check()]), delay(READY_WITHIN_MS)])
  watchHealth({ read, lists: () => denylist.lists(issuer), send })
  send({ type: 'serving', addresses: { url, tlsUrl } })
}

async function bindAgain(server: Parameters<typeof bind>[0], port: number): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await bind(server, port)
    } catch (error) {
      if (attempt === BIND_ATTEMPTS) throw error
      await delay(BIND_AGAIN_MS)
    }
  }
}
