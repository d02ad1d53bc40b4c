import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { refusingOrigin } from '../network/free-port.js'

/** What the server was asked, as it came on the wire. */
export interface KeySetRequest {
  readonly line: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
}

/** What the server does with one request; it may do anything to the socket. */
export type Behaviour = (socket: Socket, request: KeySetRequest) => void

export interface KeySetServer {
  readonly url: string
  readonly requests: readonly KeySetRequest[]
  /** What to do from the next request on; of several, one each, the last for all that follow. */
  behave(...behaviours: Behaviour[]): void
  /** Resolves once this many requests have come in all. */
  requested(count: number): Promise<void>
  /** Connections that have carried a request and are still open. */
  connections(): number
  close(): Promise<void>
}

/** A server that speaks HTTP by hand, so that it can break every rule of it. */
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

/** The address of a key set where connections are refused. */
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

/** A complete answer with a body of its rightful length. */
export function respond(status: string, body: string | Buffer, headers: Headers = {}): Behaviour {
  const length = { 'content-length': String(Buffer.byteLength(body)) }
  return (socket) => {
    socket.write(head(status, { ...length, ...headers }))
    socket.write(body)
  }
}

export const serve = (document: unknown, headers: Headers = {}): Behaviour =>
  respond('200 OK', JSON.stringify(document), headers)

/** 304 to whoever asks with this tag, the document to all others. */
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

/** Never silent for long, so that only a deadline over the whole ends it. */
export const drip =
  (document: unknown, everyMs: number): Behaviour =>
  (socket) => {
    const body = JSON.stringify(document)
    let sent = 0
    socket.write(head('200 OK', { 'content-length': String(body.length) }))
    const timer = setInterval(() => socket.write(body.charAt(sent++)), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

/** Headers, one byte of them at a time. */
export const dripHeaders =
  (document: unknown, everyMs: number): Behaviour =>
  (socket) => {
    const text = `${head('200 OK', { 'x-slow': '1'.repeat(1000) })}${JSON.stringify(document)}`
    let sent = 0
    const timer = setInterval(() => socket.write(text.charAt(sent++)), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

export const MEBIBYTE = 1024 * 1024

/** A rightful document behind a great deal of blanks; tells how many bytes the reader took. */
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
    // Without a length, so that nobody can refuse by it.
    socket.write(head('200 OK', { connection: 'close' }))
    more()
  }
  return { behaviour, taken: () => taken }
}

const BLANKS = ' '.repeat(MEBIBYTE)
/** Fast, and small enough. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

/** Little on the wire, which unpacks to this many MiB of blanks and then a rightful document. */
export function bomb(document: unknown, encoding: 'gzip' | 'br', mebibytes: number): Behaviour {
  const text = JSON.stringify(document)
  const packed =
    encoding === 'gzip'
      ? Buffer.concat([...Array(mebibytes).fill(gzipSync(BLANKS)), gzipSync(text)])
      : brotliCompressSync(`${BLANKS.repeat(mebibytes)}${text}`, BROTLI)
  return respond('200 OK', packed, { 'content-encoding': encoding })
}

/** The document in exactly this many bytes. */
export const padded = (document: unknown, bytes: number): string =>
  JSON.stringify(document).padEnd(bytes, ' ')
