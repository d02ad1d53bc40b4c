import { type DistinctHeaders, isOwnRequest, onlyValue } from '../../own-page.js'

/** What is asked of the room, by its path behind the key. */
export type Route =
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'events' }
  | { readonly kind: 'action'; readonly name: string }
  /** The address of the page without its last slash. */
  | { readonly kind: 'slash-missing' }

export interface Refusal {
  readonly status: number
  /** One line; it says nothing of the room. */
  readonly text: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Admission = { readonly route: Route } | { readonly refusal: Refusal }

/** Of a request, what decides who may ask. */
export interface AskedRequest {
  readonly method: string
  /** As it stands in the request line. */
  readonly target: string
  readonly headers: DistinctHeaders
}

export interface Gate {
  readonly port: number
  readonly isKey: (text: string) => boolean
}

/** The file that is the page itself. */
export const PAGE = 'index.html'

const METHODS = { file: 'GET', events: 'GET', action: 'POST', 'slash-missing': 'GET' } as const

/** The same for whoever has no key, a wrong one, or the right one from a wrong place. */
const FOREIGN: Refusal = { status: 403, text: 'Not for you.' }

export const NOTHING_HERE: Refusal = { status: 404, text: 'Nothing is here.' }

/**
 * Decides whether a request comes from the room's own page. Another site's page cannot read the key,
 * but it can guess the port, point a name of its own at this machine, and send requests blindly.
 */
export function admitRequest(asked: AskedRequest, { port, isKey }: Gate): Admission {
  if (!isOwnRequest(asked.headers, port)) return { refusal: FOREIGN }
  const [key, path] = splitTarget(asked.target)
  if (!isKey(key)) return { refusal: FOREIGN }
  const route = routeOf(path)
  if (route === undefined) return { refusal: NOTHING_HERE }
  if (!comesFromPage(asked, route)) return { refusal: FOREIGN }
  const method = METHODS[route.kind]
  if (asked.method === method) return { route }
  return { refusal: { status: 405, text: 'Not this method.', headers: { Allow: method } } }
}

/** The key, and the path behind it; a query counts for nothing. */
function splitTarget(target: string): [key: string, path: string] {
  const [whole = ''] = target.split('?', 1)
  const [, key = '', path = ''] = /^\/([^/]*)(.*)$/.exec(whole) ?? []
  return [key, path]
}

function routeOf(path: string): Route | undefined {
  if (path === '') return { kind: 'slash-missing' }
  if (path === '/') return { kind: 'file', name: PAGE }
  if (path === '/events') return { kind: 'events' }
  const [, action] = /^\/api\/([a-z-]+)$/.exec(path) ?? []
  if (action !== undefined) return { kind: 'action', name: action }
  const [, name] = /^\/([a-z][a-z-]*\.[a-z]+)$/.exec(path) ?? []
  return name === undefined ? undefined : { kind: 'file', name }
}

function comesFromPage({ method, headers }: AskedRequest, route: Route): boolean {
  if (headers['origin'] === undefined && method === 'POST') return false
  const site = onlyValue(headers['sec-fetch-site'])
  if (site === undefined || site === 'same-origin') return true
  // A person has typed the address, or followed it from a terminal.
  return site === 'none' && isPage(route)
}

const isPage = (route: Route): boolean =>
  route.kind === 'slash-missing' || (route.kind === 'file' && route.name === PAGE)
