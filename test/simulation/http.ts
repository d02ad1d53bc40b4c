import { IncomingMessage, ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import type { Machine } from './clock.js'
import type { Connection, End, Listener, Network } from './network.js'

/** A request as it travels. */
export interface WireRequest {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

interface FetchObserver {
  onFirstByte(): void
  onAnswer(answer: WireAnswer): void
}

const UNOBSERVED: FetchObserver = { onFirstByte() {}, onAnswer() {} }

/** As the global `fetch`, over the simulated network: one connection a request, which the server closes. */
export function simulatedFetch(
  machine: Machine,
  network: Network,
  listenerOf: () => Listener,
  { onFirstByte, onAnswer }: FetchObserver = UNOBSERVED,
): typeof globalThis.fetch {
  return (input, init = {}) =>
    new Promise<Response>((resolve, reject) => {
      const headers = [...new Headers(init.headers)]
      const body = init.body == null ? '' : Buffer.from(init.body as Uint8Array).toString()
      const request: WireRequest = {
        method: init.method ?? 'GET',
        url: new URL(String(input)).pathname,
        headers,
        body,
      }
      let received = ''
      const end: End = {
        machine,
        onData(data) {
          if (received === '') onFirstByte()
          received += data
        },
        onClose(code) {
          stop()
          if (code === undefined) {
            const answer = parseAnswer(received)
            onAnswer(answer)
            const { status, headers: fields } = answer
            return resolve(new Response(answer.body, { status, headers: fields }))
          }
          const syscall = code === 'ECONNREFUSED' ? 'connect' : 'read'
          reject(
            new TypeError('fetch failed', {
              cause: Object.assign(new Error(code), { code, syscall }),
            }),
          )
        },
      }
      const connection = network.connect(end, listenerOf(), () =>
        connection.send('client', request),
      )
      const abort = (): void => {
        connection.close('client', 'ECONNRESET')
        reject(init.signal?.reason)
      }
      const stop = (): void => init.signal?.removeEventListener('abort', abort)
      init.signal?.addEventListener('abort', abort)
    })
}

/** An answer, as it has travelled. */
export interface WireAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

function parseAnswer(text: string): WireAnswer {
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

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** Serves one connection with Node's own request and response. The body has been read and parsed. */
export function serveConnection(machine: Machine, connection: Connection, handle: Handle): End {
  const socket = new ServerSocket(connection)
  socket.on('error', () => {})
  return {
    machine,
    onData(data) {
      const { method, url, headers, body } = data as WireRequest
      const request = new IncomingMessage(socket as never)
      const rawHeaders = [...headers.flat(), 'content-length', String(body.length)]
      Object.assign(request, { method, url, originalUrl: url, baseUrl: '' })
      Object.assign(request, {
        httpVersion: '1.0',
        httpVersionMajor: 1,
        httpVersionMinor: 0,
        complete: true,
      })
      Object.assign(request, {
        rawHeaders,
        headers: Object.fromEntries([...headers, ['content-length', String(body.length)]]),
      })
      Object.assign(request, { body: body === '' ? undefined : JSON.parse(body) })
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
      if (!socket.writableEnded)
        socket.destroy(Object.assign(new Error(code), { code, syscall: 'read' }))
    },
  }
}
