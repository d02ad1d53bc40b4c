import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { knowHeaders } from './credentials.js'

/** What Node tells of `fetch`: names and values by turns, or lines in older releases. */
interface FetchRequest {
  readonly headers: readonly unknown[] | string
}

/** Learns what is sent: to a receiver of this process by anybody, and by this process to any. */
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
