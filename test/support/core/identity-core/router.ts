import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { objectIn, Refused, textOf } from '../../../../src/testing/core/mint.js'
import { badInput, type JsonObject } from './input.js'

export interface Call {
  /** In lower case; `public` if the path names none. */
  readonly tenantId: string
  readonly query: URLSearchParams
  /** Of a POST or a PUT. */
  readonly body: JsonObject
}

export interface Route {
  /** Whether it answers without an API key. */
  readonly isPublic?: boolean
  /** Whether the path may name a tenant; others belong to the whole app. */
  readonly isPerTenant?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** The body of a 200: a text, or an object for JSON. */
  answer(call: Call): object | string | Promise<object>
}

/** By method and path in lower case. */
export type Routes = Readonly<Record<string, Route>>

/** Stands before the answers: it may delay them, refuse what is asked (`Refused`) or cut it off (`CutOff`). */
export type Gate = (
  asked: Pick<Call, 'body'> & { readonly path: string },
  answer: () => Promise<object | string>,
) => Promise<object | string>

/** The connection breaks, without an answer. */
export class CutOff extends Error {
  override readonly name = 'CutOff'
}

export interface HandlerOptions {
  readonly gate?: Gate | undefined
  readonly routes: Routes
  readonly apiKey: string
}

export function createHandler(options: HandlerOptions): RequestListener {
  return (request, response) => {
    answer(request, options)
      .catch(refusalOf)
      .then((reply) => send(response, reply))
      .catch(() => response.destroy())
  }
}

interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body: object | string
}

async function answer(request: IncomingMessage, options: HandlerOptions): Promise<Reply> {
  const { method = '', headers } = request
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const { route, tenantId } = find(options.routes, path.toLowerCase(), method)
  if (route === undefined) throw new Refused(404, 'Not found')
  const key = headers['api-key'] ?? headers.authorization?.replace(/^bearer /i, '')
  if (!route.isPublic && String(key).trim() !== options.apiKey) {
    throw new Refused(401, 'Invalid API key')
  }
  if (tenantId !== 'public' && !route.isPerTenant) {
    throw new Refused(403, 'Only public tenantId can call this app specific API')
  }
  const hasBody = method === 'POST' || method === 'PUT'
  const text = hasBody ? textOf(await buffer(request), headers['content-type']) : '{}'
  const call = { tenantId, query: new URLSearchParams(query), body: objectIn(text) }
  const own = async () => route.answer(call)
  const given = await (options.gate?.({ path, body: call.body }, own) ?? own())
  return { status: 200, headers: route.headers, body: given }
}

/** The path may begin with a tenant. */
function find(routes: Routes, path: string, method: string) {
  const own = routes[`${method} ${path}`]
  if (own !== undefined) return { route: own, tenantId: 'public' }
  const [, tenantId = 'public', rest = path] = /^\/([a-z0-9-]+)(\/.+)$/.exec(path) ?? []
  return { route: routes[`${method} ${rest}`], tenantId }
}

export function noSuchTenant(tenantId: string): Refused {
  const names = 'connectionURIDomain, appId and tenantId combination'
  const text = `Tenant with the following ${names} not found: (, public, ${tenantId})`
  return badInput(`AppId or tenantId not found => ${text}`)
}

function refusalOf(error: unknown): Reply {
  if (error instanceof Refused) return { status: error.status, body: error.message }
  if (error instanceof CutOff) throw error
  console.error(error)
  return { status: 500, body: 'Internal Error' }
}

/** The server of the core sends no reason phrase. */
const NO_REASON = ''

/** Like the core: each text ends with a line break, and errors are `text/html` and close the connection. */
function send(response: ServerResponse, { status, headers, body }: Reply): void {
  const isText = typeof body === 'string'
  const type = isText ? 'text/html;charset=UTF-8' : 'application/json;charset=UTF-8'
  const isLast = status === 400 || status === 500
  const own = { 'content-type': type, ...(isLast && { connection: 'close' }) }
  response.writeHead(status, NO_REASON, { ...own, ...headers })
  response.end(`${isText ? body : JSON.stringify(body)}\n`)
}
