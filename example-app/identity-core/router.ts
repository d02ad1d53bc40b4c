import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import { BadInput } from './json-input.js'
import { readBody } from './read-body.js'
import { Refused, type Reply, send, toErrorReply } from './reply.js'

/** The core whose behaviour is followed where cores differ. */
export type CoreVersion = '10.1' | '11.4' | '12.1'

/** Versions of the core's interface that the stand-in speaks; an SDK asks for them first. */
export const INTERFACE_VERSIONS = ['3.0', '3.1', '4.0', '5.0', '5.1', '5.2', '5.3', '5.4']

/** From this version on, an app's routes are refused below a tenant. */
const TENANT_REFUSED_FROM = 5

export type Answer = Reply | 'hang-up'

export interface Call {
  /** In lower case; `public` when the path names none. */
  readonly tenantId: string
  readonly query: URLSearchParams
  /** @throws {Refused | BadInput} as `readBody` */
  body(): Promise<string>
}

export interface Route {
  readonly isPublic?: boolean
  /**
   * What a tenant in the path comes to: `unknown` is a 404, `refused` a 403, for the route belongs
   * to the whole app; `served` hands it to the answer.
   */
  readonly tenants: 'unknown' | 'refused' | 'served'
  /** By method. */
  readonly answers: Readonly<Record<string, (call: Call) => Promise<Answer> | Answer>>
  /** No limit when absent: the core has none. */
  readonly largestBodyBytes?: number
}

/** By path, in lower case. */
export type Routes = ReadonlyMap<string, Route>

export function createHandler(routes: Routes, apiKey: string): RequestListener {
  return (request, response) => {
    answer(request, routes, apiKey)
      .catch(toErrorReply)
      .then((reply) => (reply === 'hang-up' ? response.destroy() : send(response, reply)))
      .catch(() => response.destroy())
  }
}

async function answer(request: IncomingMessage, routes: Routes, apiKey: string): Promise<Answer> {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const { route, tenantId } = find(routes, path.toLowerCase().replace(/(?<=.)\/$/, ''))
  if (!route.isPublic) judge(request, { apiKey, tenantId, route })
  const answerTo = route.answers[request.method ?? '']
  if (answerTo === undefined) return { status: 405, body: 'Method not supported' }
  return answerTo({
    tenantId,
    query: new URLSearchParams(query),
    body: () => readBody(request, route.largestBodyBytes),
  })
}

/** The path may begin with an app, a tenant or both; there is one app only, called public. */
function find(routes: Routes, path: string): { route: Route; tenantId: string } {
  const [app, rest = path] = /^\/appid-([a-z0-9-]*)(\/.*)$/.exec(path)?.slice(1) ?? []
  const own = routes.get(rest)
  const [tenantId = 'public', below = ''] = /^\/([a-z0-9-]+)(\/.+)$/.exec(rest)?.slice(1) ?? []
  const route = own ?? routes.get(below)
  if (route === undefined) throw new Refused(404, 'Not found')
  if (app !== undefined && app !== 'public') throw noSuchTenant('public', app)
  if (own !== undefined || tenantId === 'public') return { route, tenantId: 'public' }
  if (route.tenants === 'unknown') throw new Refused(404, 'Not found')
  return { route, tenantId }
}

export function noSuchTenant(tenantId: string, appId = 'public'): BadInput {
  const names = 'connectionURIDomain, appId and tenantId combination'
  const text = `Tenant with the following ${names} not found: (, ${appId}, ${tenantId})`
  return new BadInput(`AppId or tenantId not found => ${text}`)
}

interface Judged {
  readonly apiKey: string
  readonly tenantId: string
  readonly route: Route
}

/** @throws {Refused | BadInput} by the key, the version and the tenant, in this order */
function judge({ headers }: IncomingMessage, { apiKey, tenantId, route }: Judged): void {
  const presented = headers['api-key'] ?? headers.authorization?.replace(/^bearer /i, '')
  if (!isSameKey(presented, apiKey)) throw new Refused(401, 'Invalid API key')
  const version = headers['cdi-version'] ?? INTERFACE_VERSIONS.at(-1)
  if (!INTERFACE_VERSIONS.includes(String(version))) {
    throw new BadInput(`cdi-version ${version} not supported`)
  }
  const isRefused = Number.parseInt(String(version), 10) >= TENANT_REFUSED_FROM
  if (tenantId !== 'public' && route.tenants === 'refused' && isRefused) {
    throw new Refused(403, 'Only public tenantId can call this app specific API')
  }
}

/** Compares digests, in constant time: neither content nor length of the key shows. */
function isSameKey(presented: string | string[] | undefined, apiKey: string): boolean {
  if (typeof presented !== 'string') return false
  return timingSafeEqual(digest(presented.trim()), digest(apiKey))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
