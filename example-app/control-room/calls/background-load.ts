import { setMaxListeners } from 'node:events'
import { Agent, request } from 'node:http'
import type { Receivers } from '../ports.js'
import { createLoadMix, type LoadCall, type LoadMix } from './load-mix.js'
import { createPace } from './pace.js'
import { readLoad } from './read-order.js'
import type { Mint } from './tokens.js'

/** Calls in the background, accepted and refused ones. */
export interface BackgroundLoad {
  /** Calls a second that are wanted now. */
  rate(): number
  /**
   * Sets the rate; the input comes unchecked. At another rate, what was under way is ended before it
   * resolves: with 0, nothing is sent any more.
   */
  set(input: unknown): Promise<object>
  close(): Promise<void>
}

export interface LoadOptions {
  readonly mint: Mint
  readonly receivers: Pick<Receivers, 'states' | 'urlOf'>
  /** How long a receiver may be silent before its call is cut. Default: 2,000. */
  readonly callLimitMs?: number
  /** How long calls are waited for when a load ends; then they are cut, and may still arrive. Default: 1,000. */
  readonly stopLimitMs?: number
}

const PERIOD_MS = 10
/** What a slow receiver can pile up here; calls beyond it are left out. */
const MAX_UNDER_WAY = 64
const MAX_CONNECTIONS = 16
const CALL_LIMIT_MS = 2000
const STOP_LIMIT_MS = 1000

export function openBackgroundLoad(options: LoadOptions): BackgroundLoad {
  let rate = 0
  let running: RunningLoad | undefined
  let lastChange: Promise<unknown> = Promise.resolve()

  async function change(callsPerSecond: number): Promise<object> {
    await running?.stop()
    running = callsPerSecond > 0 ? run(callsPerSecond, options) : undefined
    return {}
  }

  /** One change after the other, or an earlier load would go on beside a later one. */
  function set(callsPerSecond: number): Promise<object> {
    rate = callsPerSecond
    const done = lastChange.then(() => change(callsPerSecond))
    lastChange = done
    return done
  }

  return {
    rate: () => rate,
    set: async (input) => set(readLoad(input).callsPerSecond),
    close: async () => void (await set(0)),
  }
}

interface RunningLoad {
  /** Resolves when no call is under way any more. */
  stop(): Promise<void>
}

function run(callsPerSecond: number, options: LoadOptions): RunningLoad {
  const { mint, receivers, callLimitMs = CALL_LIMIT_MS, stopLimitMs = STOP_LIMIT_MS } = options
  const mix = createLoadMix(mint)
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS })
  const stopping = new AbortController()
  const cutting = new AbortController()
  for (const { signal } of [stopping, cutting]) setMaxListeners(MAX_UNDER_WAY, signal)
  const pace = createPace(callsPerSecond, performance.now())
  const underWay = new Set<Promise<void>>()
  const way = { agent, callLimitMs, stopping: stopping.signal, cutting: cutting.signal }
  let turn = 0

  function beginCall(urls: readonly string[]): void {
    const url = urls[turn % urls.length]
    turn += 1
    if (url === undefined || underWay.size >= MAX_UNDER_WAY) return
    const call = sendNext(mix, { ...way, url })
    underWay.add(call)
    void call.finally(() => underWay.delete(call))
  }

  const timer = setInterval(() => {
    const due = pace.due(performance.now())
    if (due === 0) return
    const ready = receivers.states().filter(({ phase }) => phase === 'ready')
    const urls = ready.map(({ name }) => receivers.urlOf(name))
    for (let begun = 0; begun < due; begun += 1) beginCall(urls)
  }, PERIOD_MS)
  return {
    async stop() {
      clearInterval(timer)
      stopping.abort()
      mix.close()
      // Calls that are cut count as failed. Node takes one new connection in each turn of its loop: on
      // a busy machine one call may wait long while others, on connections that are kept, go on.
      const limit = setTimeout(() => cutting.abort(), stopLimitMs)
      await Promise.all(underWay)
      clearTimeout(limit)
      agent.destroy()
    },
  }
}

interface Way {
  readonly url: string
  readonly agent: Agent
  readonly callLimitMs: number
  /** Leaves out what has no token or no connection yet. */
  readonly stopping: AbortSignal
  /** Cuts all the others. */
  readonly cutting: AbortSignal
}

/** Never rejects: the receiver reports how a call ends. */
async function sendNext(mix: LoadMix, way: Way): Promise<void> {
  try {
    const call = await mix.next()
    if (!way.stopping.aborted) await send(call, way)
  } catch {
    // The core gives no token: this call is left out.
  }
}

function send(call: LoadCall, way: Way): Promise<void> {
  const { url, agent, callLimitMs, stopping, cutting } = way
  const { method, path, body, idempotencyKey } = call.composed
  return new Promise((done) => {
    const sent = request(`${url}${path}`, {
      method,
      agent,
      signal: cutting,
      timeout: callLimitMs,
      headers: {
        authorization: call.authorization,
        ...(body !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        }),
        ...(idempotencyKey !== undefined && { 'idempotency-key': `"${idempotencyKey}"` }),
      },
    })
    sent.on('response', (response) => {
      call.answered(response.statusCode ?? 0)
      response.resume()
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => undefined)
    const leaveOut = () => {
      if (sent.socket === null) sent.destroy()
    }
    stopping.addEventListener('abort', leaveOut)
    sent.on('close', () => {
      stopping.removeEventListener('abort', leaveOut)
      done()
    })
    sent.end(body)
  })
}
