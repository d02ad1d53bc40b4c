import { randomUUID } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { issuer } from '../issuer/issuer.js'
import { openExchange, type RawExchange, type RawRequest } from '../network/raw-exchange.js'

export interface Call {
  readonly method?: string
  readonly path?: string
  readonly key?: string | undefined
  readonly body?: string | Buffer | undefined
  readonly contentType?: string
  readonly headers?: Record<string, string | string[]>
  /** Claims that replace the claims of a valid token. */
  readonly claims?: Readonly<Record<string, unknown>>
}

export interface Answer {
  readonly status: number
  readonly reason: string
  /** Names in lower case; without `date`. */
  readonly headers: Record<string, string[]>
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** The problem type, or `undefined`. */
  readonly problem: string | undefined
  /** Whether the connection broke before the response was whole. */
  readonly isBroken: boolean
}

export const newKey = (): string => randomUUID()

/** Sends one request with a new token; resolves with the response, also if the connection breaks. */
export function call(port: number, given: Call = {}): Promise<Answer> {
  const { method = 'POST', path = '/orders/1' } = given
  const headers = headersOf(given)
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false })
    let isAnswered = false
    sent.on('response', (message) => {
      isAnswered = true
      void readAnswer(message).then(resolve)
    })
    sent.on('error', () => {
      if (!isAnswered) resolve(BROKEN)
    })
    sent.end(given.body)
  })
}

function headersOf(given: Call): Record<string, string | string[]> {
  const { key, body, contentType = 'application/json', claims } = given
  return {
    ...(given.headers?.['authorization'] === undefined && {
      authorization: `Bearer ${issuer.token(claims)}`,
    }),
    ...(key !== undefined && { 'idempotency-key': key }),
    ...(body !== undefined && {
      'content-type': contentType,
      'content-length': String(Buffer.byteLength(body)),
    }),
    ...given.headers,
  }
}

const BROKEN: Answer = {
  status: 0,
  reason: '',
  headers: {},
  body: Buffer.alloc(0),
  trailers: [],
  problem: undefined,
  isBroken: true,
}

async function readAnswer(message: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  let isBroken = false
  try {
    for await (const chunk of message) chunks.push(chunk)
  } catch {
    isBroken = true
  }
  const headers: Record<string, string[]> = {}
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (name !== 'date') headers[name] = values ?? []
  }
  const body = Buffer.concat(chunks)
  return {
    status: message.statusCode ?? 0,
    reason: message.statusMessage ?? '',
    headers,
    body,
    trailers: message.rawTrailers,
    problem: problemOf(headers, body),
    isBroken: isBroken || !message.complete,
  }
}

function problemOf(headers: Answer['headers'], body: Buffer): string | undefined {
  if (headers['content-type']?.[0] !== 'application/problem+json' || body.length === 0) return
  const text = headers['content-encoding'] ? gunzipSync(body) : body
  const { type } = JSON.parse(text.toString()) as { type: string }
  return type.replace('urn:express-service-auth:', '')
}

export interface RawCall extends Omit<RawExchange, 'send'> {
  send(call: Call): void
}

/** Sends requests on one new connection without waiting for answers, and shows the received bytes. */
export function callRaw(port: number, ...calls: readonly Call[]): RawCall {
  const exchange = openExchange(port)
  const send = (each: Call): void => exchange.send(rawOf(each))
  calls.forEach(send)
  return { ...exchange, send }
}

function rawOf(given: Call): RawRequest {
  const { method = 'POST', path = '/orders/1', body = '' } = given
  const headers = Object.entries(headersOf(given)).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  )
  return { method, path, headers, body: Buffer.from(body) }
}
