import { subscribe } from 'node:diagnostics_channel'
import type { RequestListener, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { IdempotencyEvent } from 'express-service-auth'

export interface Service {
  readonly app: RequestListener
  /** Tried until it resolves. */
  readonly ready: () => Promise<unknown>
  /** What `/readyz` shows, from memory. */
  readonly health: () => object
  /** Closes the policy, denylists and, last, the store. */
  readonly close: () => unknown
  /** How long a balancer may take to see that `/readyz` has changed. Default: 5 s. */
  readonly serveOnMs?: number
  /** How long, after that, what is under way is waited for. Default: 20 s. */
  readonly waitMs?: number
}

const RETRY_MS = 1000
const POLL_MS = 20

/** Serves the app, `/livez` and `/readyz` until SIGTERM or SIGINT; then ends the process. */
export function serveUntilSignal(server: Server, service: Service): void {
  const { app, ready, health, close, serveOnMs = 5000, waitMs = 20_000 } = service
  let phase: 'starting' | 'ready' | 'stopping' = 'starting'
  const runs = watchRuns()
  const lastResponses = new Map<Socket, ServerResponse>()
  const open = () => [...lastResponses.values()].filter((res) => !res.writableFinished)
  const isUnderWay = () => runs.size > 0 || open().length > 0

  server.on('request', (req, res) => {
    const { socket, url } = req
    if (!lastResponses.has(socket)) socket.once('close', () => lastResponses.delete(socket))
    lastResponses.set(socket, res)
    if (phase === 'stopping') res.setHeader('Connection', 'close')
    if (url === '/livez') answer(res, 200, { phase })
    else if (url === '/readyz') answer(res, phase === 'ready' ? 200 : 503, { phase, ...health() })
    else app(req, res)
  })

  async function start(): Promise<void> {
    while (phase === 'starting') {
      try {
        await ready()
        if (phase === 'starting') phase = 'ready'
      } catch (error) {
        console.error(`not ready: ${(error as Error).message}`)
        await delay(RETRY_MS)
      }
    }
  }

  async function stop(): Promise<void> {
    if (phase === 'stopping') return
    phase = 'stopping'
    for (const res of open()) if (!res.headersSent) res.setHeader('Connection', 'close')
    await delay(serveOnMs)
    // Not http's own close(): it cuts a response that has been ended and is still being sent.
    NetServer.prototype.close.call(server)
    const deadline = performance.now() + waitMs
    while (isUnderWay() && performance.now() < deadline) await delay(POLL_MS)
    const isCut = isUnderWay()
    server.closeAllConnections()
    await close()
    process.exit(isCut ? 1 : 0)
  }

  void start()
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop)
}

function answer(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
  res.end(JSON.stringify(body))
}

/** The writes whose handlers are at work, also where the caller has hung up. */
function watchRuns(): ReadonlySet<string> {
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
