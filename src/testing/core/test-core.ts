import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { readClock } from '../../base/clock.js'
import {
  functionOf,
  integerBetween,
  lazy,
  nonEmptyString,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { createKeyRing, createSigningKey, type KeyRing } from '../issuer/issuer-keys.js'
import { delayOf, serveOnLoopback } from '../issuer/loopback.js'
import { mintToken, objectIn, parseMintRequest, Refused, textOf } from './mint.js'

/** Options of `createTestCore`. */
export interface TestCoreOptions {
  /** The port of the core, 0 to 65,535; 0 takes a free one. Default: 0. */
  readonly port?: number | undefined
  /** What callers send as `api-key`. Default: a random one. */
  readonly apiKey?: string | undefined
  /** `issuer` of the core. Default: a loopback address, which serves `/auth/jwt/jwks.json`. */
  readonly issuer?: string | undefined
  /** The time in milliseconds since the epoch, for `iat` and `exp`. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined
}

/** A core that mints service tokens, in the process of a test. */
export interface TestCore {
  /**
   * The address of the core: `POST /recipe/jwt`, `GET /apiversion`, `GET /hello`, and its key set at
   * `/.well-known/jwks.json`.
   */
  readonly url: string
  /** What callers send as `api-key`. */
  readonly apiKey: string
  /** The `apiDomain` of callers and the `issuer` of receivers. */
  readonly issuer: string
  /** Makes a new key, which signs from now on; the earlier ones stay published. Returns its id. */
  rotate(): string
  /** Refuses connections, and cuts those that are open. The keys stay. */
  stop(): Promise<void>
  /** Ends `stop()`, at the same addresses. @throws Error (as a rejection) if a port was taken meanwhile. */
  start(): Promise<void>
  /** From now on, `POST /recipe/jwt` answers after this many milliseconds, 0 to 600,000. */
  delay(ms: number): void
  /** The next so many calls of `POST /recipe/jwt` are answered with 429. */
  busy(times: number): void
  /** Stops it for good. Safe to call twice. */
  close(): Promise<void>
}

const schema = lazy(() =>
  optionsObject({
    port: integerBetween(0, 65_535).default(0),
    apiKey: nonEmptyString().optional(),
    issuer: nonEmptyString().optional(),
    clock: functionOf<() => number>().optional(),
  }),
)

const API_KEY_BYTES = 24
const CACHE_CONTROL = 'max-age=3600, must-revalidate'

/** The versions of its interface (CDI) that core 11.4 lists. */
const INTERFACE_VERSIONS = [
  ...Array.from({ length: 15 }, (_, index) => `2.${index + 7}`),
  ...['3.0', '3.1', '4.0', '5.0', '5.1', '5.2', '5.3', '5.4'],
]

/**
 * Starts a core for tests of a caller (`tokenSource`, `serviceFetch`), on loopback HTTP. It mints like a SuperTokens
 * core, and keeps no users. It does not keep the process alive.
 *
 * @throws TypeError (as a rejection) if an option is unknown, of the wrong type or out of range.
 * @throws Error (as a rejection) if the port is taken.
 *
 * @example
 * ```ts
 * import { tokenSource } from 'express-service-auth/client'
 * import { createTestCore } from 'express-service-auth/testing'
 *
 * const core = await createTestCore()
 * const tokens = tokenSource({
 *   core: { baseUrl: core.url, apiKey: core.apiKey },
 *   apiDomain: core.issuer,
 *   claims: {
 *     aud: 'orders',
 *     sub: 'billing',
 *     source: 'microservice',
 *     token_type: 'service-access',
 *     permissions: ['orders:read'],
 *   },
 * })
 * await tokens.ready()
 * await core.close()
 * ```
 */
export async function createTestCore(options: TestCoreOptions = {}): Promise<TestCore> {
  const settings = parseOptions('createTestCore options', schema, options)
  const { apiKey = randomBytes(API_KEY_BYTES).toString('base64url'), clock = Date.now } = settings
  const ring = createKeyRing(createSigningKey)
  const trouble = { delayMs: 0, busyTimes: 0 }
  const answers = answering(
    {
      '/hello': { method: 'GET', isPublic: true, answer: () => ({ status: 200, body: 'Hello' }) },
      '/apiversion': { method: 'GET', answer: () => ok({ versions: INTERFACE_VERSIONS }) },
      '/.well-known/jwks.json': keySetOf(ring),
      '/recipe/jwt': {
        method: 'POST',
        async answer(request) {
          const isBusy = trouble.busyTimes > 0
          if (isBusy) trouble.busyTimes -= 1
          const body = await buffer(request)
          await sleep(trouble.delayMs, undefined, { ref: false })
          if (isBusy) return { status: 429, body: 'Too many requests' }
          const asked = objectIn(textOf(body, request.headers['content-type']))
          return ok(mintToken(parseMintRequest(asked), ring, readClock(clock)))
        },
      },
    },
    apiKey,
  )
  const core = await serveOnLoopback(answers, settings.port)
  const domain = await serveOnLoopback(answering({ '/auth/jwt/jwks.json': keySetOf(ring) }, apiKey))
  async function stop(): Promise<void> {
    await Promise.all([core.stop(), domain.stop()])
  }
  let isClosed = false
  return {
    url: core.url,
    apiKey,
    issuer: settings.issuer ?? domain.url,
    rotate: () => ring.rotate().kid,
    stop,
    async start() {
      if (isClosed) throw new Error('the test core is closed')
      await Promise.all([core.start(), domain.start()])
    },
    delay(ms) {
      trouble.delayMs = delayOf('delay', ms)
    },
    busy(times) {
      if (!Number.isSafeInteger(times) || times < 0) {
        throw new TypeError('busy: times must be a whole number, 0 or more')
      }
      trouble.busyTimes = times
    },
    close() {
      isClosed = true
      return stop()
    },
  }
}

interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body: object | string
}

interface Route {
  readonly method: 'GET' | 'POST'
  /** Whether it answers without the API key. */
  readonly isPublic?: boolean
  answer(request: IncomingMessage): Reply | Promise<Reply>
}

/** Routes by their path. */
type Routes = Readonly<Record<string, Route>>

const ok = (body: object): Reply => ({ status: 200, body })

const keySetOf = (ring: KeyRing): Route => ({
  method: 'GET',
  isPublic: true,
  answer: () => ({ ...ok(ring.document()), headers: { 'cache-control': CACHE_CONTROL } }),
})

const answering =
  (routes: Routes, apiKey: string): RequestListener =>
  (request, response) => {
    reply(request, routes, apiKey)
      .catch(toReply)
      .then((answer) => send(response, answer))
      .catch(() => response.destroy())
  }

async function reply(request: IncomingMessage, routes: Routes, apiKey: string): Promise<Reply> {
  const [path = ''] = (request.url ?? '').split('?')
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (route === undefined) return { status: 404, body: 'Not found' }
  if (!route.isPublic && request.headers['api-key'] !== apiKey) {
    return { status: 401, body: 'Invalid API key' }
  }
  if (request.method !== route.method) return { status: 405, body: 'Method not supported' }
  return route.answer(request)
}

function toReply(error: unknown): Reply {
  if (error instanceof Refused) return { status: error.status, body: error.message }
  return { status: 500, body: String(error) }
}

/** Each text of the core ends with a line break, and its errors claim to be HTML. */
function send(response: ServerResponse, { status, headers, body }: Reply): void {
  const isText = typeof body === 'string'
  const type = isText ? 'text/html;charset=UTF-8' : 'application/json;charset=UTF-8'
  response.writeHead(status, { 'content-type': type, ...headers })
  response.end(`${isText ? body : JSON.stringify(body)}\n`)
}
