import { connect, type Socket } from 'node:net'

export interface RawRequest {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  /** Header lines as they go over the wire. */
  readonly headers?: readonly string[]
  readonly body?: string | Buffer
}

/** A new connection, and all bytes that it has received, as latin1. */
export interface RawExchange {
  readonly socket: Socket
  /** Sends a request without waiting for the answer to an earlier one. */
  send(request: RawRequest): void
  /** Returns all bytes received so far. */
  received(): string
  /** Resolves with all received bytes, once the connection is closed. */
  readonly closed: Promise<string>
}

export function openExchange(port: number): RawExchange {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  const received = (): string => Buffer.concat(chunks).toString('latin1')
  socket.on('data', (chunk) => chunks.push(chunk))
  // A server that refuses early resets the connection while the request is still being written.
  socket.on('error', () => {})
  return {
    socket,
    received,
    closed: new Promise((resolve) => socket.once('close', () => resolve(received()))),
    send({ method = 'GET', path = '/', host = '127.0.0.1', headers = [], body = '' }) {
      const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...headers]
      socket.write(Buffer.concat([latin1(`${head.join('\r\n')}\r\n\r\n`), latin1(body)]))
    },
  }
}

const latin1 = (bytes: string | Buffer): Buffer =>
  typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes

/** Sends one request on a new connection; resolves with all bytes of the answer except its `Date`. */
export async function rawRequest(port: number, request: RawRequest = {}): Promise<string> {
  const exchange = openExchange(port)
  exchange.send({ ...request, headers: ['Connection: close', ...(request.headers ?? [])] })
  return withoutDate(await exchange.closed)
}

export const withoutDate = (bytes: string): string => bytes.replace(/\r\nDate: [^\r]*/i, '')
