import { subscribe } from 'node:diagnostics_channel'
import type { RequestListener, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { IdempotencyEvent } from 'express-service-auth'

export interface Service {
  readonly app: RequestListener
  /** Tried every second until it resolves. */
  readonly ready: () => Promise<unknown>
  /** What `/readyz` shows, from memory. */
  readonly health: () => object
  /** Closes the policy, denylists and, last, the store. */
  readonly close: () => unknown
  /** How long a balancer may take to see that `/readyz` has changed. Default: 5 s. */
  readonly serveOnMs?: number | undefined
  /** How long, after that, what is under way is waited for. Default: 20 s. */
  readonly waitMs?: number | undefined
}

const RETRY_MS = 1000
const POLL_MS = 20

/** Serves the app, `/livez` and `/readyz` until SIGTERM or SIGINT; then ends the process. */
export function serveUntilSignal(server: Server, service: Service): void {
  const { app, ready, health, close, serveOnMs = 5000, waitMs = 20_000 } = service
  let phase: 'starting' | 'ready' | 'stopping' = 'starting'
  const runs = writesUnderWay()
  const lastResponses = new Map<Socket, ServerResponse>()
  const unsent = () => [...lastResponses.values()].filter((res) => !res.writableFinished)

  server.on('request', (req, res) => {
    const { socket, url } = req
    if (!lastResponses.has(socket)) socket.once('close', () => lastResponses.delete(socket))
    lastResponses.set(socket, res)
    if (phase === 'stopping') res.setHeader('Connection', 'close')
    if (url === '/livez') res.end(JSON.stringify({ phase }))
    else if (url !== '/readyz') app(req, res)
    else res.writeHead(phase === 'ready' ? 200 : 503).end(JSON.stringify({ phase, ...health() }))
  })

  function becomeReady(): void {
    if (phase !== 'starting') return
    ready().then(
      () => {
        if (phase === 'starting') phase = 'ready'
      },
      (error) => {
        console.error(`not ready: ${error.message}`)
        setTimeout(becomeReady, RETRY_MS)
      },
    )
  }

  async function stop(): Promise<void> {
    if (phase === 'stopping') return
    phase = 'stopping'
    for (const res of unsent()) if (!res.headersSent) res.setHeader('Connection', 'close')
    await delay(serveOnMs)
    // Not http's own close(): it cuts a response that has been ended and is still being sent.
    NetServer.prototype.close.call(server)
    setTimeout(() => process.exit(1), waitMs)
    while (runs.size > 0 || unsent().length > 0) await delay(POLL_MS)
    server.closeAllConnections()
    await close()
    process.exit(0)
  }

  becomeReady()
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop)
}

/** The writes whose handlers are at work, also where the caller has hung up. */
function writesUnderWay(): ReadonlySet<string> {
  const runs = new Set<string>()
  subscribe('express-service-auth:idempotency', (message) => {
    const event = message as IdempotencyEvent
    if (!('fence' in event)) return
    const run = `${event.record} ${event.fence}`
    if (event.reason === 'reserved') runs.add(run)
    else runs.delete(run)
  })
  return runs
}
