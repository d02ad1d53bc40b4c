import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { afterAll } from 'vitest'
import { serviceFetch } from '../../src/client/service-fetch/service-fetch.js'
import type { ServiceFetchOptions } from '../../src/client/service-fetch/service-fetch-options.js'
import { serve } from '../support/receiver/serve.js'
import { knowToken } from '../support/secret-search/index.js'

export interface Recorded {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** How a server answers one request. */
export type Reply = (response: ServerResponse) => unknown

export interface Service {
  readonly url: string
  readonly port: number
  readonly requests: readonly Recorded[]
  /** What it was sent in `Authorization`. */
  readonly tokens: readonly (string | undefined)[]
}

const services: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(services.map(({ close }) => close())))

/** A server that answers as told, the last one for good, and keeps what it was sent. */
export async function startService(...replies: readonly Reply[]): Promise<Service> {
  const requests: Recorded[] = []
  const listener: RequestListener = async (request, response) => {
    const { method, url, headers } = request
    const body = await buffer(request).catch(() => Buffer.alloc(0))
    const reply = replies[Math.min(requests.length, replies.length - 1)] ?? ok
    requests.push({ method, path: url, headers, body })
    await reply(response)
  }
  const served = await serve((request, response) => void listener(request, response))
  services.push(served)
  const { url, port } = served
  return {
    url,
    port,
    requests,
    get tokens() {
      return requests.map(({ headers }) => headers.authorization)
    },
  }
}

export const answer =
  (status: number, headers: Record<string, string> = {}, body = ''): Reply =>
  (response) =>
    response.writeHead(status, headers).end(body)

export const ok: Reply = answer(200, { 'content-type': 'application/json' }, '{"ok":true}')

/** The connection breaks before any answer. */
export const hangUp: Reply = (response) => response.destroy()

/** Nothing comes. */
export const silence: Reply = () => {}

const CHALLENGE = 'Bearer realm="service", error="invalid_token"'

/** The contract's refusal of a token, to the byte. */
export const refusal: Reply = answer(
  401,
  {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'www-authenticate': CHALLENGE,
  },
  '{"type":"about:blank","title":"Unauthorized","status":401}',
)

/** Another one that refuses the token. */
export const otherRefusal: Reply = answer(401, { 'www-authenticate': CHALLENGE }, 'no')

export const unavailable = (retryAfter = '0'): Reply =>
  answer(503, { 'retry-after': retryAfter, 'content-type': 'text/plain' }, 'later')

/** Gives a new token each time. */
export function countingSource(prefix = 'token') {
  const asked: (string | undefined)[] = []
  return {
    asked,
    async token({ after }: { readonly after?: string } = {}) {
      asked.push(after)
      const made = `${prefix}-${asked.length}-of-the-caller`
      knowToken(made)
      return made
    },
  }
}

export const caller = (
  { url }: { readonly url: string },
  options: Partial<ServiceFetchOptions> = {},
): typeof globalThis.fetch => serviceFetch(countingSource(), { origins: [url], ...options })
