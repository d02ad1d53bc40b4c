import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { knowHeaders } from './credentials.js'

/** A request of `fetch`: names and values in turn, or in older releases of Node lines. */
interface FetchRequest {
  readonly headers: readonly unknown[] | string
}

/** Learns the secrets in all requests that this process receives or sends. */
export function watchRequests(): void {
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { request: IncomingMessage }
    knowHeaders(request.rawHeaders)
  })
  subscribe('http.client.request.start', (message) => {
    const { request } = message as { request: ClientRequest }
    knowHeaders(Object.entries(request.getHeaders()).flat(1))
  })
  subscribe('undici:request:create', (message) => {
    const { headers } = (message as { request: FetchRequest }).request
    knowHeaders(typeof headers === 'string' ? headers.split(/: |\r\n/) : headers)
  })
}
