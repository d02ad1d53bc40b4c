import { randomUUID } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { issuer, type TokenOptions } from './issuer.js'

export interface Call {
  readonly method?: string
  readonly path?: string
  readonly key?: string | undefined
  readonly body?: string | Buffer | undefined
  readonly contentType?: string
  readonly headers?: Record<string, string | string[]>
  readonly token?: TokenOptions
}

export interface Answer {
  readonly status: number
  readonly reason: string
  /** Names in lower case, in no order, without `date`. */
  readonly headers: Record<string, string[]>
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** The problem type, or `undefined`. */
  readonly problem: string | undefined
  /** Whether the connection broke before the response was whole. */
  readonly isBroken: boolean
}

export const newKey = (): string => randomUUID()

/** One request with a fresh token; resolves with the response however it ends. */
export async function call(port: number, given: Call = {}): Promise<Answer> {
  const headers = await headersOf(given)
  return new Promise((resolve) => {
    const { method = 'POST', path = '/orders/1' } = given
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

async function headersOf(given: Call): Promise<Record<string, string | string[]>> {
  const { key, body, contentType = 'application/json', token } = given
  return {
    authorization: `Bearer ${await (await issuer()).token(token)}`,
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

export interface RawCall {
  readonly socket: Socket
  /** Sends a further request. */
  send(call: Call): Promise<void>
  /** What has come so far. */
  received(): string
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>
}

/** Sends requests one behind another on a socket of its own and shows the octets as they come. */
export async function callRaw(port: number, ...calls: readonly Call[]): Promise<RawCall> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const send = async (given: Call): Promise<void> => {
    socket.write(await headOf(given))
    socket.write(given.body ?? '')
  }
  for (const each of calls) await send(each)
  return { socket, send, received: () => text, closed }
}

async function headOf(given: Call): Promise<string> {
  const { method = 'POST', path = '/orders/1' } = given
  const lines = Object.entries(await headersOf(given)).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  )
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${lines.join('\r\n')}\r\n\r\n`
}
