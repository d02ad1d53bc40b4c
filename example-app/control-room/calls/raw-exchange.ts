import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { CallAnswer } from '../protocol.js'
import { readAnswer } from './read-answer.js'

export interface RawCall {
  /** `http://<address>:<port>`, or with `https` */
  readonly url: string
  /** In PEM: whom to trust, and the client certificate with its key. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string } | undefined
  readonly request: Buffer
  /** Milliseconds until the answer must be there. */
  readonly limitMs: number
}

export interface RawAnswer {
  readonly answer: CallAnswer
  readonly isReplay: boolean
}

/** More than any answer of a receiver has. */
const MAX_ANSWER_BYTES = 64 * 1024

const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
}

/** Sends a request over a connection of its own. Never rejects: what fails is a `failure`. */
export function exchange({ url, tls, request, limitMs }: RawCall): Promise<RawAnswer> {
  const { hostname: host, port: text } = new URL(url)
  const port = Number(text)
  const startedAt = performance.now()
  const chunks: Buffer[] = []
  let bytes = 0
  let isSent = false
  const socket = tls ? connectTls({ host, port, ...tls }) : connect({ host, port })
  return new Promise((resolve) => {
    const finish = (answer: { status: number } | { failure: string }, isReplay = false) => {
      clearTimeout(timer)
      socket.destroy()
      const text = Buffer.concat(chunks).toString()
      const milliseconds = performance.now() - startedAt
      const shown =
        'status' in answer
          ? { ...answer, text, bytes, milliseconds }
          : { ...answer, text, milliseconds, isSent }
      resolve({ answer: shown, isReplay })
    }
    const look = (isEnded: boolean) => {
      const found = readAnswer(Buffer.concat(chunks), isEnded)
      if (found.state === 'whole') finish({ status: found.status }, found.isReplay)
      else if (found.state === 'malformed') finish({ failure: 'the answer is not HTTP/1.1' })
      else if (bytes > MAX_ANSWER_BYTES) finish({ failure: 'the answer is larger than 64 KiB' })
      else if (isEnded) finish({ failure: cutAfter(bytes) })
    }
    const timer = setTimeout(() => finish({ failure: silentFor(limitMs) }), limitMs)
    socket.on(tls ? 'secureConnect' : 'connect', () => {
      isSent = true
      socket.write(request)
    })
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      bytes += chunk.length
      look(false)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => finish({ failure: explain(error) }))
    onEnd(socket, () => look(true))
  })
}

function onEnd(socket: Socket, listener: () => void): void {
  socket.once('end', listener)
  socket.once('close', listener)
}

const cutAfter = (bytes: number): string =>
  bytes === 0
    ? 'the connection was cut before an answer came'
    : `the connection was cut after ${bytes} bytes of the answer`

const silentFor = (limitMs: number): string => `nobody answered within ${limitMs / 1000} s`

const explain = ({ code = '', message }: NodeJS.ErrnoException): string =>
  FAILURES[code] ?? `the connection failed (${code || message})`
