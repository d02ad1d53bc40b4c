import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, type Machine, Timer } from './clock.js'
import type { Attempt, Run } from './history.js'
import { serveConnection, simulatedFetch } from './http.js'
import { ISSUER } from './issuer.js'
import type { Package } from './load.js'
import type { Connection, End, Listener } from './network.js'
import type { Stage } from './stage.js'
import { type Ending, type Plan, RETENTION_SECONDS } from './story.js'

type Next = (error?: unknown) => void
type Middleware = (request: never, response: never, next: Next) => void

const STORED_TOO_LARGE_BYTES = 200
export const OPERATION = 'create order'

/** Of every route. */
export const ROUTE = {
  operation: OPERATION,
  retentionSeconds: RETENTION_SECONDS,
  maxResponseBytes: STORED_TOO_LARGE_BYTES,
} as const

/** What a process has opened of its store. */
export interface Opened {
  readonly denylist?: ReturnType<Package['redisDenylist']>
  readonly once: unknown
  /** Uses the token up before the key is looked up. */
  readonly singleUse?: unknown
  close(): void
}

export interface Context {
  readonly fence: number
  readonly signal: AbortSignal
  release(): void
}

/** An address behind which one process after the other serves. */
export class Receiver implements Listener {
  readonly name: string
  machine!: Machine
  isListening = false
  protected readonly stage: Stage
  readonly #clock: Clock
  #close: () => void = () => {}
  #bootedAt = 0
  #isOver = false

  constructor(stage: Stage, name: string, clock: Clock) {
    this.name = name
    this.stage = stage
    this.#clock = clock
  }

  /** Starts a process, unless the story is over. */
  start(): void {
    if (this.#isOver) return
    const { simulation, network, issuer } = this.stage
    this.machine = simulation.machine(this.name, this.#clock)
    this.isListening = true
    this.#bootedAt = simulation.now
    // The list of who is denied has to be read first.
    if (this.stage.story.hasDenylist) this.stage.disturb('boot', this.name, 0)
    simulation.after(0, this.machine, () => {
      const fetch = simulatedFetch(this.machine, network, issuer)
      this.#chain = this.#assemble(fetch)
    })
  }

  #chain: readonly Middleware[] = []

  protected open(): Opened {
    const { package: esa, story } = this.stage
    const redis = new esa.Redis({ lazyConnect: true })
    const replicas = story.waitsForReplicas ? { replicas: { min: 1, timeoutMs: 200 } } : {}
    const store = esa.redisStore(redis, replicas)
    const denylist = story.hasDenylist ? esa.redisDenylist(redis, { name: this.name }) : undefined
    const { leaseSeconds, maxRunSeconds, whenAbandoned } = story
    return {
      ...(denylist && { denylist }),
      close() {
        denylist?.close()
        store.close()
        redis.disconnect()
      },
      once: esa.requireIdempotencyKey({
        store,
        ...ROUTE,
        leaseSeconds,
        maxRunSeconds,
        whenAbandoned,
      }),
      ...(story.isSingleUse && { singleUse: esa.requireSingleUse({ store }) }),
    }
  }

  #assemble(fetch: typeof globalThis.fetch): readonly Middleware[] {
    const { package: esa, story } = this.stage
    const { denylist, once, singleUse, close } = this.open()
    const keySet = esa.remoteKeySet({
      jwksUri: `${ISSUER}/auth/jwt/jwks.json`,
      staleIfErrorSeconds: story.staleIfErrorSeconds,
      fetch,
    })
    const auth = esa.serviceAuth({
      issuer: ISSUER,
      audience: 'orders',
      source: 'microservice',
      tokenType: 'service-access',
      callers: { billing: ['orders:write'], reporting: ['orders:write'] },
      permissions: ['orders:write'],
      keySet,
      tokenCache: { max: 20 },
      clockToleranceSeconds: 30,
      ...(denylist !== undefined && { denylist }),
    })
    this.#close = () => {
      auth.close()
      keySet.close()
      close()
    }
    const mark =
      (set: (attempt: Attempt) => void): Middleware =>
      (request, _response, next) => {
        set(this.stage.attemptOf(request))
        next()
      }
    return [
      auth as never,
      mark((attempt) => {
        attempt.isAdmitted = true
        attempt.admittedAt = this.stage.simulation.now
      }),
      ...(singleUse === undefined
        ? []
        : [singleUse as never, mark((attempt) => (attempt.isConsumed = true))]),
      once as never,
      (request, response) => void this.#handle(request, response),
    ]
  }

  accept(connection: Connection): End {
    return serveConnection(this.machine, connection, (request, response) =>
      this.#serve(request, response),
    )
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { simulation } = this.stage
    const attempt = this.stage.attemptOf(request)
    attempt.receiver = this.name
    attempt.bootedAt = this.#bootedAt
    attempt.receivedAt = simulation.now
    response.on('finish', () => {
      attempt.answeredStatus = response.statusCode
    })
    const chain = this.#chain
    const run = (index: number, error?: unknown): void => {
      if (error !== undefined) {
        // As Express' final handler.
        if (response.headersSent) response.req.socket.destroy()
        else {
          response.statusCode = 500
          response.end(`error ${error instanceof Error ? error.message : ''}`)
        }
        return
      }
      try {
        chain[index]?.(request as never, response as never, (failure) => run(index + 1, failure))
      } catch (failure) {
        run(index, failure)
      }
    }
    run(0)
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const stage = this.stage
    const { idempotency } = request as IncomingMessage & { idempotency: Context }
    const run = stage.begin(stage.attemptOf(request), {
      fence: idempotency.fence,
      receiver: this.name,
      machine: this.machine,
    })
    const { plan } = run.attempt.call
    idempotency.signal.addEventListener('abort', () => (run.lostLeaseAt = stage.simulation.now))
    await this.pause(plan.beforeMs)
    if (plan.ending === 'releases the key') idempotency.release()
    const ending = await this.work(run, plan, request)
    this.answer(run, ending, response)
  }

  /** What the handler does; resolves to how it ends. */
  protected async work(run: Run, plan: Plan, _request: IncomingMessage): Promise<Ending> {
    if (plan.ending !== 'releases the key') this.stage.effect(run)
    await this.pause(plan.afterMs)
    return plan.ending
  }

  /** A handler stays with the process that began it. */
  protected pause(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve()
    const machine = this.stage.simulation.current as Machine
    return new Promise((resolve) => new Timer(machine, resolve, { ms }))
  }

  protected answer(run: Run, ending: Ending, response: ServerResponse): void {
    this.stage.ended(run, ending)
    response.setHeader('content-type', 'text/plain')
    response.setHeader('location', `/orders/${run.number}`)
    response.statusCode = 201
    const body = `run ${run.number} of ${run.recordName} with ${run.body}`
    const send = (status: number, text: string): void => {
      response.statusCode = status
      run.answer = { status, body: text }
      response.end(text)
    }
    switch (ending) {
      case 'answers':
      case 'swallows an error':
      case 'writes late':
        send(201, body)
        return
      case 'answers in parts': {
        run.answer = { status: 201, body }
        response.write(body.slice(0, 4))
        void this.pause(1).then(() => {
          response.write(body.slice(4, 5))
          response.end(body.slice(5))
        })
        return
      }
      case 'answers too much':
        send(201, body.padEnd(STORED_TOO_LARGE_BYTES + 1, '.'))
        return
      case 'streams':
        run.answer = { status: 201, body: `${body}!` }
        response.setHeader('content-type', 'text/event-stream')
        response.write(body)
        void this.pause(500).then(() => response.end('!'))
        return
      case 'fails':
      case 'passes on an error':
        send(500, `run ${run.number} failed`)
        return
      case 'refuses':
      case 'refuses and keeps its writes':
        send(422, `run ${run.number} refuses`)
        return
      case 'hangs':
      case 'destroys its response':
        response.destroy()
        return
      case 'releases the key':
        response.setHeader('retry-after', '1')
        send(503, `run ${run.number}: not now`)
    }
  }

  /** The process ends at once. */
  kill(): void {
    this.isListening = false
    this.machine.kill()
  }

  /** Stops for good. */
  retire(): void {
    this.stop()
    this.#isOver = true
  }

  /** Closes what the process has opened, and accepts no further connection. */
  stop(): void {
    this.isListening = false
    const close = this.#close
    this.stage.simulation.after(0, this.machine, () => close())
  }
}
