import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll } from 'vitest'
import { type CoreClientOptions, coreClient } from '../../../src/migration/core/open-core-client.js'
import { serve } from '../../support/receiver/serve.js'

/** What the core does with one request. */
export type Reply = (response: ServerResponse) => void

interface Request {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface ScriptedCore {
  readonly url: string
  readonly requests: readonly Request[]
  /** A client of it, with the shortest waits that a test can do with. */
  client(options?: Partial<CoreClientOptions>): ReturnType<typeof coreClient>
}

export const API_KEY = 'the-key-of-the-scripted-core'

const served: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(served.map(({ close }) => close())))

/**
 * A core that gives these replies in turn, and the last one again and again. A function is asked for
 * each request. It ends with the test file.
 */
export async function startScriptedCore(
  replies: readonly Reply[] | ((request: Request) => Reply),
): Promise<ScriptedCore> {
  const requests: Request[] = []
  const replyTo = (request: Request): Reply | undefined =>
    typeof replies === 'function'
      ? replies(request)
      : replies[Math.min(requests.length, replies.length) - 1]
  const core = await serve(async (incoming, response) => {
    const { method = '', url: path = '', headers } = incoming
    const request = {
      method,
      url: path,
      headers,
      body: await text(incoming),
    }
    requests.push(request)
    replyTo(request)?.(response)
  })
  served.push(core)
  const { url } = core
  return {
    url,
    requests,
    client: (options = {}) => coreClient({ baseUrl: url, apiKey: API_KEY, ...options }),
  }
}

/** The core's errors are text to their media type, JSON or not; its successes are JSON. */
export const replies =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (response) => {
    const type = status === 200 ? 'application/json' : 'text/html'
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    response
      .writeHead(status, { 'content-type': `${type}; charset=UTF-8`, ...headers })
      .end(isRaw ? body : `${JSON.stringify(body)}\n`)
  }

export const ok = (members: object): Reply => replies(200, { status: 'OK', ...members })

const BEGINNING = '{"status":"OK",'

/** Sends the beginning of a reply that promises more. */
const begins = (response: ServerResponse, then: () => void): void => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
  response.write(BEGINNING, then)
}

/** The ways in which a core that has got a request is unreachable; each tells of the code. */
export const OUTAGES: readonly [string, Reply, 'unreachable' | 'timeout'][] = [
  ['closes the connection', (response) => response.destroy(), 'unreachable'],
  ['resets the connection', (response) => response.socket?.resetAndDestroy(), 'unreachable'],
  ['is silent', () => {}, 'timeout'],
  ['is silent after the head', (response) => response.writeHead(200).flushHeaders(), 'timeout'],
  ['is silent in its reply', (response) => begins(response, () => {}), 'timeout'],
  ['cuts its reply', (response) => begins(response, () => response.destroy()), 'unreachable'],
  ['trickles', (response) => begins(response, () => trickle(response)), 'timeout'],
  ['talks something else', (response) => response.socket?.end('220 mail ready\r\n'), 'unreachable'],
]

function trickle(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}

/** More than any reply may have (128 MiB), which only a `fetch` of the test's own gives in a moment. */
export function tooLarge(): Response {
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(129 * 1024 * 1024)),
  })
  return new Response(body)
}
