import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, type Machine, Timer } from './clock.js'
import type { Attempt, Run } from './history.js'
import { serveConnection, simulatedFetch } from './http.js'
import { ISSUER } from './issuer.js'
import type { Connection, End, Listener } from './network.js'
import type { Stage } from './stage.js'
import { type Plan, RETENTION_SECONDS } from './story.js'

type Next = (error?: unknown) => void
type Middleware = (request: never, response: never, next: Next) => void

const STORED_TOO_LARGE_BYTES = 200
export const OPERATION = 'create order'

interface Context {
  readonly fence: number
  readonly signal: AbortSignal
  release(): void
}

/** An address behind which one process after the other serves. */
export class Receiver implements Listener {
  readonly name: string
  machine!: Machine
  isListening = false
  readonly #stage: Stage
  readonly #clock: Clock
  #close: () => void = () => {}
  #bootedAt = 0

  constructor(stage: Stage, name: string, clock: Clock) {
    this.name = name
    this.#stage = stage
    this.#clock = clock
  }

  /** Starts a process. */
  start(): void {
    const { simulation, network, issuer } = this.#stage
    this.machine = simulation.machine(this.name, this.#clock)
    this.isListening = true
    this.#bootedAt = simulation.now
    // The list of who is denied has to be read first.
    if (this.#stage.story.hasDenylist) this.#stage.disturb('boot', this.name, 0)
    simulation.after(0, this.machine, () => {
      const fetch = simulatedFetch(this.machine, network, () => issuer)
      this.#chain = this.#assemble(fetch)
    })
  }

  #chain: readonly Middleware[] = []

  #assemble(fetch: typeof globalThis.fetch): readonly Middleware[] {
    const { package: esa, story } = this.#stage
    const redis = new esa.Redis({ lazyConnect: true })
    const replicas = story.waitsForReplicas ? { replicas: { min: 1, timeoutMs: 200 } } : {}
    const store = esa.redisStore(redis, replicas)
    const denylist = story.hasDenylist ? esa.redisDenylist(redis, { name: this.name }) : undefined
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
      denylist?.close()
      store.close()
      redis.disconnect()
    }
    const once = esa.requireIdempotencyKey({
      store,
      operation: OPERATION,
      retentionSeconds: RETENTION_SECONDS,
      leaseSeconds: story.leaseSeconds,
      maxRunSeconds: story.maxRunSeconds,
      whenAbandoned: story.whenAbandoned,
      maxResponseBytes: STORED_TOO_LARGE_BYTES,
    })
    const mark =
      (set: (attempt: Attempt) => void): Middleware =>
      (request, _response, next) => {
        set(this.#stage.attemptOf(request))
        next()
      }
    return [
      auth as never,
      mark((attempt) => {
        attempt.isAdmitted = true
        attempt.admittedAt = this.#stage.simulation.now
      }),
      ...(story.isSingleUse
        ? [esa.requireSingleUse({ store }) as never, mark((attempt) => (attempt.isConsumed = true))]
        : []),
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
    const { simulation } = this.#stage
    const attempt = this.#stage.attemptOf(request)
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
    const stage = this.#stage
    const { idempotency } = request as IncomingMessage & { idempotency: Context }
    const run = stage.begin(stage.attemptOf(request), {
      fence: idempotency.fence,
      receiver: this.name,
      machine: this.machine,
    })
    const plan = stage.plans.get(run.attempt.call) as Plan
    idempotency.signal.addEventListener('abort', () => (run.lostLeaseAt = stage.simulation.now))
    const { machine } = this
    await this.#work(plan.beforeMs, machine)
    if (plan.ending === 'releases the key') idempotency.release()
    else stage.effect(run)
    await this.#work(plan.afterMs, machine)
    this.#end(run, plan, response)
  }

  /** A handler stays with the process that began it. */
  #work(ms: number, machine = this.machine): Promise<void> {
    if (ms === 0) return Promise.resolve()
    return new Promise((resolve) => new Timer(machine, resolve, { ms }))
  }

  #end(run: Run, { ending }: Plan, response: ServerResponse): void {
    this.#stage.ended(run, ending)
    response.setHeader('content-type', 'text/plain')
    response.setHeader('location', `/orders/${run.number}`)
    response.statusCode = 201
    const body = `run ${run.number} of ${run.recordName} with ${run.body}`
    switch (ending) {
      case 'answers':
        run.answer = { status: 201, body }
        response.end(body)
        return
      case 'answers in parts': {
        run.answer = { status: 201, body }
        response.write(body.slice(0, 4))
        void this.#work(1).then(() => {
          response.write(body.slice(4, 5))
          response.end(body.slice(5))
        })
        return
      }
      case 'answers too much': {
        const long = body.padEnd(STORED_TOO_LARGE_BYTES + 1, '.')
        run.answer = { status: 201, body: long }
        response.end(long)
        return
      }
      case 'streams':
        run.answer = { status: 201, body: `${body}!` }
        response.setHeader('content-type', 'text/event-stream')
        response.write(body)
        void this.#work(500).then(() => response.end('!'))
        return
      case 'fails':
        response.statusCode = 500
        run.answer = { status: 500, body: `run ${run.number} failed` }
        response.end(run.answer.body)
        return
      case 'destroys its response':
        response.destroy()
        return
      case 'releases the key':
        response.statusCode = 503
        response.setHeader('retry-after', '1')
        run.answer = { status: 503, body: `run ${run.number}: not now` }
        response.end(run.answer.body)
    }
  }

  /** The process ends at once. */
  kill(): void {
    this.isListening = false
    this.machine.kill()
  }

  /** Closes what the process has opened, and accepts no further connection. */
  stop(): void {
    this.isListening = false
    const close = this.#close
    this.#stage.simulation.after(0, this.machine, () => close())
  }
}
