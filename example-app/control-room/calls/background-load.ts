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
}

const PERIOD_MS = 10
/** What a slow receiver can pile up here; calls beyond it are left out. */
const MAX_UNDER_WAY = 64
const MAX_CONNECTIONS = 16
const CALL_LIMIT_MS = 2000

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

function run(callsPerSecond: number, { mint, receivers }: LoadOptions): RunningLoad {
  const mix = createLoadMix(mint)
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS })
  const stopping = new AbortController()
  const pace = createPace(callsPerSecond, performance.now())
  const underWay = new Set<Promise<void>>()
  let turn = 0

  function beginCall(): void {
    const ready = receivers.states().filter(({ phase }) => phase === 'ready')
    const receiver = ready[turn % ready.length]
    turn += 1
    if (receiver === undefined || underWay.size >= MAX_UNDER_WAY) return
    const url = receivers.urlOf(receiver.name)
    const call = sendNext(mix, { url, agent, stopping: stopping.signal })
    underWay.add(call)
    void call.finally(() => underWay.delete(call))
  }

  const timer = setInterval(() => {
    for (let due = pace.due(performance.now()); due > 0; due -= 1) beginCall()
  }, PERIOD_MS)
  return {
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await Promise.all(underWay)
      mix.close()
      agent.destroy()
    },
  }
}

interface Way {
  readonly url: string
  readonly agent: Agent
  readonly stopping: AbortSignal
}

/** Never rejects: how a call ends is told by its receiver. */
async function sendNext(mix: LoadMix, way: Way): Promise<void> {
  try {
    const call = await mix.next()
    if (!way.stopping.aborted) await send(call, way)
  } catch {
    // The core gives no token: this call is left out.
  }
}

function send(call: LoadCall, { url, agent, stopping }: Way): Promise<void> {
  const { method, path, body, idempotencyKey } = call.composed
  const limit = AbortSignal.timeout(CALL_LIMIT_MS)
  return new Promise((done) => {
    const sent = request(`${url}${path}`, {
      method,
      agent,
      signal: AbortSignal.any([stopping, limit]),
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
    sent.on('error', () => undefined)
    sent.on('close', () => done())
    sent.end(body)
  })
}
