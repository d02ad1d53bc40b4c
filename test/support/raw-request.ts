import { once } from 'node:events'
import { connect } from 'node:net'

export interface RawRequest {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  /** Header lines as they go over the wire. */
  readonly headers?: readonly string[]
  readonly body?: string
}

/** One request over a socket of its own; resolves with every octet of the answer but its `Date`. */
export async function rawRequest(port: number, request: RawRequest = {}): Promise<string> {
  const { method = 'GET', path = '/', host = '127.0.0.1', headers = [], body = '' } = request
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...headers]
  // A server that refuses early resets the connection while the request is still being written.
  socket.on('error', () => {})
  socket.write(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'))
  await once(socket, 'close')
  return Buffer.concat(chunks)
    .toString('latin1')
    .replace(/\r\nDate: [^\r]*/i, '')
}
