import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { BadInput } from './json-input.js'
import type { KeyRing } from './key-ring.js'
import { isSupported, mintToken, parseMintRequest } from './mint.js'
import { readBody } from './read-body.js'
import { openSessions } from './sessions.js'

/** Versions of the core's interface that the stand-in speaks; an SDK asks for them first. */
const INTERFACE_VERSIONS = ['3.0', '3.1', '4.0', '5.0', '5.1', '5.2', '5.3', '5.4']

export interface CoreParts {
  readonly apiKey: string
  readonly keyRing: KeyRing
  readonly clock: () => number
  /** Asked before each answer with the key set. */
  readonly onKeySetRequest: () => 'serve' | 'unavailable' | 'hang-up'
}

interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  /** An object is sent as JSON, a string as plain text; errors are always text. */
  readonly body: object | string
}

type Answer = Reply | 'hang-up'

interface Route {
  readonly method: 'GET' | 'POST'
  readonly isPublic: boolean
  readonly answer: (request: IncomingMessage) => Promise<Answer> | Answer
}

/** The HTTP interface of the core, as far as service tokens and users' sessions need it. */
export function createCoreHandler(parts: CoreParts): RequestListener {
  const keySet: Route = { method: 'GET', isPublic: true, answer: () => publishKeySet(parts) }
  const sessions = openSessions(parts)
  const createSession = post(sessions.create)
  const routes = new Map<string, Route>([
    ['/apiversion', get({ versions: INTERFACE_VERSIONS })],
    ['/recipe/jwt', post((text) => mint(text, parts))],
    ['/.well-known/jwks.json', keySet],
    ['/auth/jwt/jwks.json', keySet],
    ['/recipe/session', createSession],
    ['/public/recipe/session', createSession],
    ['/recipe/session/verify', post(sessions.verify)],
    ['/recipe/session/remove', post(sessions.remove)],
    // The stand-in keeps no users: to the SDK the session's user is then the one it was given.
    ['/user/id', get({ status: 'UNKNOWN_USER_ID_ERROR' })],
  ])
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    answer(request, routes.get(path), parts.apiKey)
      .catch(toErrorReply)
      .then((reply) => (reply === 'hang-up' ? response.destroy() : send(response, reply)))
      .catch(() => response.destroy())
  }
}

async function answer(
  request: IncomingMessage,
  route: Route | undefined,
  apiKey: string,
): Promise<Answer> {
  if (route === undefined) return { status: 404, body: 'Not found' }
  if (!route.isPublic && !isSameKey(request.headers['api-key'], apiKey)) {
    return { status: 401, body: 'Invalid API key' }
  }
  if (request.method !== route.method) return { status: 405, body: 'Method not supported' }
  return route.answer(request)
}

function get(body: object): Route {
  return { method: 'GET', isPublic: false, answer: () => ({ status: 200, body }) }
}

/** A route that answers 200, unless the body is none that the core takes. */
function post(answerTo: (text: string) => Promise<object> | object): Route {
  return {
    method: 'POST',
    isPublic: false,
    async answer(request) {
      const version = request.headers['cdi-version']
      if (version !== undefined && !INTERFACE_VERSIONS.includes(String(version))) {
        throw new BadInput(`cdi-version ${version} not supported`)
      }
      const text = await readBody(request).catch(() => {
        throw new BadInput('Invalid Json Input')
      })
      if (text === undefined) {
        return { status: 413, headers: { connection: 'close' }, body: 'Request body too large' }
      }
      return { status: 200, body: await answerTo(text) }
    },
  }
}

async function mint(text: string, { keyRing, clock }: CoreParts): Promise<object> {
  const asked = parseMintRequest(text)
  if (!isSupported(asked.algorithm)) return { status: 'UNSUPPORTED_ALGORITHM_ERROR' }
  const key = await keyRing.signingKey(asked.useStaticSigningKey ? 'static' : 'dynamic')
  return { status: 'OK', jwt: mintToken(asked, key, clock()) }
}

async function publishKeySet({ keyRing, onKeySetRequest }: CoreParts): Promise<Answer> {
  const choice = onKeySetRequest()
  if (choice === 'hang-up') return choice
  if (choice === 'unavailable') return { status: 503, body: 'Service Unavailable' }
  const { keys, maxAgeSeconds } = await keyRing.keySet()
  const cacheControl = `max-age=${maxAgeSeconds}, must-revalidate`
  return { status: 200, headers: { 'cache-control': cacheControl }, body: { keys } }
}

/** Compares digests, in constant time: neither content nor length of the key shows. */
function isSameKey(presented: string | string[] | undefined, apiKey: string): boolean {
  if (typeof presented !== 'string') return false
  return timingSafeEqual(digest(presented), digest(apiKey))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function toErrorReply(error: unknown): Reply {
  if (error instanceof BadInput) return { status: 400, body: error.message }
  console.error(error)
  return { status: 500, body: 'Internal Error' }
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  const isText = typeof body === 'string'
  const bytes = Buffer.from(isText ? body : JSON.stringify(body))
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8'
  const own = { 'content-type': type, 'content-length': bytes.length }
  response.writeHead(status, { ...own, ...headers }).end(bytes)
}
