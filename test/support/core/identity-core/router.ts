import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import { posix } from 'node:path'
import { Refused } from '../../../../src/testing/core/mint.js'
import { BadInput } from './input.js'
import {
  type CoreVersion,
  notSupported,
  type RequestedVersion,
  requestedVersion,
} from './interface-version.js'
import { readBody } from './read-body.js'
import { type Reply, send, toErrorReply } from './reply.js'

/** Since this version, a path may name a tenant. */
const TENANTS_FROM = '3.0'
/** Since this version, an app's routes are refused below a tenant. */
const TENANT_REFUSED_FROM = '5.0'
/** Routes begin with these words, so no tenant has such a name. */
const NO_TENANTS = new Set(['recipe', 'config', 'users', 'hello'])

export interface Call {
  /** In lower case; `public` if the path names none. */
  readonly tenantId: string
  readonly query: URLSearchParams
  /** @throws {Refused | BadInput} like `readBody` */
  body(): Promise<string>
}

export interface Route {
  /** Whether it answers without an API key. */
  readonly isPublic?: boolean
  /** Whether it accepts every interface version up to the core's newest, even an unlisted one. */
  readonly isOfEachVersion?: boolean
  /** `refused`: a tenant in the path gives 403, because the route belongs to the whole app. */
  readonly tenants: 'refused' | 'served'
  /** The handlers, by method. */
  readonly answers: Readonly<Record<string, (call: Call) => Promise<Reply> | Reply>>
}

export interface HandlerOptions {
  /** The routes, by path in lower case. */
  readonly routes: ReadonlyMap<string, Route>
  readonly apiKey: string
  readonly version: CoreVersion
}

export function createHandler(options: HandlerOptions): RequestListener {
  return (request, response) => {
    answer(request, options)
      .catch(toErrorReply)
      .then((reply) => send(response, reply))
      .catch(() => response.destroy())
  }
}

async function answer(request: IncomingMessage, options: HandlerOptions): Promise<Reply> {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const found = find(options.routes, normalised(path))
  const { route, appId, tenantId } = found
  // An app that does not exist has no key to check.
  if (!route.isPublic && appId === 'public' && !presentsKey(request, options.apiKey)) {
    throw new Refused(401, 'Invalid API key')
  }
  const version = requestedVersion(request.headers, options.version)
  if (tenantId !== 'public' && version.isBefore(TENANTS_FROM)) throw new Refused(404, 'Not found')
  if (!route.isOfEachVersion && !version.isOffered) throw notSupported(version.text)
  const answerTo = route.answers[request.method ?? '']
  if (answerTo === undefined) return { status: 405, body: 'Method not supported' }
  if (appId !== 'public') throw noSuchTenant('public', appId)
  if (isBelowTenant(found, version)) {
    throw new Refused(403, 'Only public tenantId can call this app specific API')
  }
  return answerTo({
    tenantId,
    query: new URLSearchParams(withoutBadEscapes(query)),
    body: () => readBody(request),
  })
}

/** Drops path parameters, and resolves dots and doubled slashes, like the core's server. */
function normalised(path: string): string {
  try {
    return posix.normalize(decodeURIComponent(path.replaceAll(/;[^/]*/g, ''))).toLowerCase()
  } catch {
    throw new Refused(400, 'Bad Request')
  }
}

interface Found {
  readonly route: Route
  readonly appId: string
  readonly tenantId: string
}

/** The core's server drops a parameter with an invalid percent escape. */
function withoutBadEscapes(query: string): string {
  const isWellFormed = (part: string) => !/%(?![0-9a-f]{2})/i.test(part)
  return query.split('&').filter(isWellFormed).join('&')
}

/** The path may begin with an app, a tenant or both; the only app is `public`. */
function find(routes: HandlerOptions['routes'], path: string): Found {
  const withoutSlash = path.replace(/\/$/, '')
  const [, app = '', rest = withoutSlash] = APP.exec(withoutSlash) ?? []
  const appId = app === '' ? 'public' : app
  const own = routes.get(rest)
  if (own !== undefined) return { route: own, appId, tenantId: 'public' }
  const [, tenantId = 'public', below = ''] = TENANT.exec(rest) ?? []
  const route = routes.get(below)
  if (route !== undefined && !NO_TENANTS.has(tenantId)) return { route, appId, tenantId }
  // A path of only an app and a tenant keeps both, because they are what was not found.
  const isWhole = rest === '' || (below === '' && TENANT.test(rest) && !NO_TENANTS.has(tenantId))
  const outside = isWhole ? { appId, tenantId } : { appId: 'public', tenantId: 'public' }
  const isRoot = rest === '' || rest === '/public'
  return { route: isRoot ? HELLO : NOT_FOUND, ...outside }
}

const APP = /^\/appid-([a-z0-9-]*)(|\/.*)$/
const TENANT = /^\/([a-z0-9-]+)(|\/.+)$/

const HELLO = outsideOfRoutes({ status: 200, body: 'Hello' })
const NOT_FOUND = outsideOfRoutes({ status: 404, body: 'Not found' })

function outsideOfRoutes(reply: Reply): Route {
  const methods = ['GET', 'POST', 'PUT', 'DELETE']
  const answers = Object.fromEntries(methods.map((method) => [method, () => reply]))
  return { isPublic: true, tenants: 'served', answers }
}

export const helloRoute: Route = { ...HELLO, isOfEachVersion: true }

function isBelowTenant({ route, tenantId }: Found, version: RequestedVersion): boolean {
  const isRefused = route.tenants === 'refused' && tenantId !== 'public'
  return isRefused && !version.isBefore(TENANT_REFUSED_FROM)
}

export function noSuchTenant(tenantId: string, appId = 'public'): BadInput {
  const names = 'connectionURIDomain, appId and tenantId combination'
  const text = `Tenant with the following ${names} not found: (, ${appId}, ${tenantId})`
  return new BadInput(`AppId or tenantId not found => ${text}`)
}

/**
 * Compares digests in constant time, so that the time reveals neither the content nor the length of
 * the key.
 */
function presentsKey({ headers }: IncomingMessage, apiKey: string): boolean {
  const presented = headers['api-key'] ?? headers.authorization?.replace(/^bearer /i, '')
  if (typeof presented !== 'string') return false
  return timingSafeEqual(digest(presented.trim()), digest(apiKey))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
