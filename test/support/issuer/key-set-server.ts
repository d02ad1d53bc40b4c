import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { refusingOrigin } from '../network/free-port.js'

/** A request as the server received it. */
export interface KeySetRequest {
  readonly line: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
}

/** Answers one request; may do anything to the socket. */
export type Behaviour = (socket: Socket, request: KeySetRequest) => void

export interface KeySetServer {
  readonly url: string
  readonly requests: readonly KeySetRequest[]
  /** Sets the behaviours of the next requests, one each; the last one is for all that follow. */
  behave(...behaviours: Behaviour[]): void
  /** Resolves once the server has received this many requests since its start. */
  requested(count: number): Promise<void>
  /** The number of open connections that have carried a request. */
  connections(): number
  close(): Promise<void>
}

/** Starts a server that writes HTTP itself, so that it can break every rule of HTTP. */
export async function startKeySetServer(...behaviours: Behaviour[]): Promise<KeySetServer> {
  const requests: KeySetRequest[] = []
  const arrivals = new EventEmitter().setMaxListeners(0)
  const sockets = new Set<Socket>()
  const used = new Set<Socket>()
  let script = behaviours

  const server = createServer((socket) => {
    sockets.add(socket)
    socket
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(socket)
        used.delete(socket)
      })
    let unread = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      unread += chunk
      const end = unread.indexOf('\r\n\r\n')
      if (end === -1) return
      const request = parseHead(unread.slice(0, end))
      unread = unread.slice(end + 4)
      requests.push(request)
      used.add(socket)
      const behaviour = script.length > 1 ? script.shift() : script[0]
      behaviour?.(socket, request)
      arrivals.emit('request')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    requests,
    behave(...next) {
      script = next
    },
    async requested(count) {
      while (requests.length < count) await once(arrivals, 'request')
    },
    connections: () => used.size,
    async close() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Returns a key set URL that refuses connections. */
export const refusingUrl = async (): Promise<string> => `${await refusingOrigin()}/jwks.json`

function parseHead(head: string): KeySetRequest {
  const [line = '', ...fields] = head.split('\r\n')
  const headers = fields.map((field): [string, string] => {
    const colon = field.indexOf(':')
    return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
  })
  return { line, headers: new Map(headers) }
}

type Headers = Readonly<Record<string, string>>

function head(status: string, headers: Headers): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status}\r\n${fields.join('')}\r\n`
}

/** Sends a complete response with the right `Content-Length`. */
export function respond(status: string, body: string | Buffer, headers: Headers = {}): Behaviour {
  const length = { 'content-length': String(Buffer.byteLength(body)) }
  return (socket) => {
    socket.write(head(status, { ...length, ...headers }))
    socket.write(body)
  }
}

export const serve = (document: unknown, headers: Headers = {}): Behaviour =>
  respond('200 OK', JSON.stringify(document), headers)

/** Answers 304 to a request with this tag, and any other request with the document. */
export const serveTagged =
  (document: unknown, tag: string, headers: Headers = {}): Behaviour =>
  (socket, request) => {
    const isKnown = request.headers.get('if-none-match') === tag
    const answer = isKnown
      ? respond('304 Not Modified', '', headers)
      : serve(document, { ...headers, etag: tag })
    answer(socket, request)
  }

export const redirectTo = (location: string): Behaviour => respond('302 Found', '', { location })

export const hangUp: Behaviour = (socket) => socket.resetAndDestroy()

export const hang: Behaviour = () => {}

export const headersThenHang: Behaviour = (socket) => {
  socket.write(head('200 OK', { 'content-length': '1000' }))
}

/** Sends the document byte by byte, so that only a deadline for the whole response ends it. */
export const drip =
  (document: unknown, everyMs: number): Behaviour =>
  (socket) => {
    const body = JSON.stringify(document)
    let sent = 0
    socket.write(head('200 OK', { 'content-length': String(body.length) }))
    const timer = setInterval(() => socket.write(body.charAt(sent++)), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

/** Sends the headers byte by byte, too. */
export const dripHeaders =
  (document: unknown, everyMs: number): Behaviour =>
  (socket) => {
    const text = `${head('200 OK', { 'x-slow': '1'.repeat(1000) })}${JSON.stringify(document)}`
    let sent = 0
    const timer = setInterval(() => socket.write(text.charAt(sent++)), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

export const MEBIBYTE = 1024 * 1024

/** Sends this many blanks before the document; `taken` returns the number of blanks that were written. */
export function flood(document: unknown, bytes: number): { behaviour: Behaviour; taken(): number } {
  let taken = 0
  const blanks = Buffer.alloc(64 * 1024, ' ')
  const behaviour: Behaviour = (socket) => {
    let left = bytes
    const more = (): void => {
      if (left <= 0) return void socket.write(JSON.stringify(document))
      left -= blanks.length
      socket.write(blanks, (error) => {
        if (error) return
        taken += blanks.length
        more()
      })
    }
    // Without Content-Length, so that the reader cannot refuse the response by it.
    socket.write(head('200 OK', { connection: 'close' }))
    more()
  }
  return { behaviour, taken: () => taken }
}

const BLANKS = ' '.repeat(MEBIBYTE)
/** The fastest quality still packs blanks well. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

/** Sends a small response that unpacks to this many MiB of blanks before the document. */
export function bomb(document: unknown, encoding: 'gzip' | 'br', mebibytes: number): Behaviour {
  const text = JSON.stringify(document)
  const packed =
    encoding === 'gzip'
      ? Buffer.concat([...Array(mebibytes).fill(gzipSync(BLANKS)), gzipSync(text)])
      : brotliCompressSync(`${BLANKS.repeat(mebibytes)}${text}`, BROTLI)
  return respond('200 OK', packed, { 'content-encoding': encoding })
}

/** Pads the document to exactly this many bytes. */
export const padded = (document: unknown, bytes: number): string =>
  JSON.stringify(document).padEnd(bytes, ' ')
