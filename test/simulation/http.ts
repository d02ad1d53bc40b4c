import { IncomingMessage, ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import type { Machine } from './clock.js'
import type { Answer } from './history.js'
import { type Connection, type End, errorOf, type Listener, type Network } from './network.js'

/** A request as it travels. */
interface WireRequest {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

interface FetchObserver {
  onFirstByte?(): void
  onAnswer?(answer: Answer): void
}

/** As the global `fetch`, over the simulated network: one connection a request, which the server closes. */
export function simulatedFetch(
  machine: Machine,
  network: Network,
  listener: Listener,
  observer: FetchObserver = {},
): typeof globalThis.fetch {
  return (input, init = {}) =>
    new Promise<Response>((resolve, reject) => {
      const request: WireRequest = {
        method: init.method ?? 'GET',
        url: new URL(String(input)).pathname,
        headers: [...new Headers(init.headers)],
        body: init.body == null ? '' : Buffer.from(init.body as Uint8Array).toString(),
      }
      let received = ''
      const end: End = {
        machine,
        onData(data) {
          if (received === '') observer.onFirstByte?.()
          received += data
        },
        onClose(code) {
          init.signal?.removeEventListener('abort', abort)
          if (code !== undefined) {
            reject(new TypeError('fetch failed', { cause: errorOf(code) }))
            return
          }
          const answer = parseAnswer(received)
          observer.onAnswer?.(answer)
          const { status, headers } = answer
          resolve(new Response(answer.body, { status, headers }))
        },
      }
      const connection = network.connect(end, listener, () => connection.send('client', request))
      const abort = (): void => {
        connection.close('client', 'ECONNRESET')
        reject(init.signal?.reason)
      }
      init.signal?.addEventListener('abort', abort)
    })
}

function parseAnswer(text: string): Answer {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const at = line.indexOf(': ')
    headers[line.slice(0, at).toLowerCase()] = line.slice(at + 2)
  }
  return { status: Number(statusLine.split(' ')[1]), headers, body: text.slice(end + 4) }
}

/** The server's side of a connection, as Node's HTTP server has it. */
class ServerSocket extends Duplex {
  readonly #connection: Connection

  constructor(connection: Connection) {
    super()
    this.#connection = connection
  }

  override _read(): void {}

  override _write(data: Buffer, _encoding: BufferEncoding, written: () => void): void {
    this.#connection.send('server', data.toString('latin1'))
    written()
  }

  override _final(ended: () => void): void {
    this.#connection.close('server')
    ended()
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#connection.close('server', 'ECONNRESET')
    destroyed(error)
  }
}

/** Serves one connection with Node's own request and response. The body has been read and parsed. */
export function serveConnection(
  machine: Machine,
  connection: Connection,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): End {
  const socket = new ServerSocket(connection)
  socket.on('error', () => {})
  return {
    machine,
    onData(data) {
      const { method, url, body, ...wire } = data as WireRequest
      const headers = [...wire.headers, ['content-length', String(body.length)]]
      const request = new IncomingMessage(socket as never)
      Object.assign(request, {
        method,
        url,
        originalUrl: url,
        baseUrl: '',
        httpVersion: '1.0',
        httpVersionMajor: 1,
        httpVersionMinor: 0,
        complete: true,
        rawHeaders: headers.flat(),
        headers: Object.fromEntries(headers),
        body: body === '' ? undefined : JSON.parse(body),
      })
      const response = new ServerResponse(request)
      // Its `Date` would be the real one.
      response.sendDate = false
      response.assignSocket(socket as never)
      response.on('finish', () => socket.end())
      request.push(body)
      request.push(null)
      request.on('end', () => handle(request, response))
      request.resume()
    },
    onClose(code = 'ECONNRESET') {
      if (!socket.writableEnded) socket.destroy(errorOf(code))
    },
  }
}
