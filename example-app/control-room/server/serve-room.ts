import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bind } from '../../listen.js'
import { ActionError, type Room, UnavailableError } from '../ports.js'
import { UNFINISHED } from '../protocol.js'
import { refuse, send, sendError, sendJson } from './answer.js'
import { createEventStreams, type EventStreams } from './event-stream.js'
import { admitRequest, type Gate, NOTHING_HERE } from './gate.js'
import { STRICT_HEADERS } from './headers.js'
import type { PageFiles } from './page-files.js'
import { readJson } from './read-json.js'
import { keyCheck, newRoomKey } from './room-key.js'
import { createUnfinished, type Unfinished } from './unfinished.js'

/** The status of an answer that is not the result yet. */
const ACCEPTED = 202

/** Of a request; an answer takes as long as it takes. */
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
}

export interface RoomServerOptions {
  /** Asked with each request; whoever asks early waits for it. */
  readonly room: () => Promise<Room>
  readonly files: PageFiles
  /** 0, the default, takes a free one. */
  readonly port?: number
  /** What opens the room; without it, a new one. */
  readonly key?: string
}

export interface RoomServer {
  /** Of the page; the key is in it. */
  readonly address: string
  /** Ends every page's stream; the room itself goes on. */
  close(): Promise<void>
}

/**
 * Serves a room's page on the loopback address, to whoever has the key.
 * @throws {StartError} when the port is taken or may not be used
 */
export async function serveRoom(options: RoomServerOptions): Promise<RoomServer> {
  const { room, files, port = 0, key = newRoomKey() } = options
  const streams = createEventStreams()
  const unfinished = createUnfinished()
  const server = createServer(LIMITS)
  const url = await bind(server, port)
  const gate: Gate = { port: (server.address() as AddressInfo).port, isKey: keyCheck(key) }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: target = '', headersDistinct: headers } = request
    const admission = admitRequest({ method, target, headers }, gate)
    if ('refusal' in admission) return refuse(response, admission.refusal)
    const { route } = admission
    if (route.kind === 'action') {
      return act({ room: await room(), unfinished, name: route.name }, request, response)
    }
    if (route.kind === 'events') return openStream(streams, await room(), response)
    if (route.kind === 'file') return sendFile(files, route.name, response)
    refuse(response, { status: 308, text: '', headers: { Location: `/${key}/` } })
  }

  server.on('request', (request, response) => {
    for (const [name, value] of Object.entries(STRICT_HEADERS)) response.setHeader(name, value)
    serve(request, response).catch((error: unknown) => {
      if (request.socket.destroyed || response.headersSent) return void response.destroy()
      console.error('control room:', error)
      sendError(response, { status: 500, text: 'A fault of our own; the terminal tells more.' })
    })
  })
  return {
    address: `${url}/${key}/`,
    close() {
      return new Promise((done) => {
        server.close(() => done())
        streams.close()
        server.closeAllConnections()
      })
    },
  }
}

interface AskedAction {
  readonly room: Room
  readonly unfinished: Unfinished
  readonly name: string
}

async function act(
  { room, unfinished, name }: AskedAction,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const read = await readJson(request)
  if ('refusal' in read) return sendError(response, read.refusal)
  try {
    const progress = await (name === UNFINISHED
      ? unfinished.ask(read.value)
      : unfinished.begin(room.act(name, read.value)))
    if ('ticket' in progress) sendJson(response, progress, ACCEPTED)
    else sendJson(response, progress.result)
  } catch (error) {
    if (!(error instanceof ActionError)) throw error
    const status = error instanceof UnavailableError ? 503 : 400
    sendError(response, { status, text: inOneLine(error.message) })
  }
}

/** What a visitor has typed is quoted in complaints. */
const inOneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ')

function openStream(streams: EventStreams, room: Room, response: ServerResponse): void {
  if (streams.isFull()) refuse(response, { status: 503, text: 'Too many pages are open.' })
  else if (!response.destroyed) streams.open(room, response)
}

function sendFile(files: PageFiles, name: string, response: ServerResponse): void {
  const file = files.get(name)
  if (file === undefined) refuse(response, NOTHING_HERE)
  else send(response, { status: 200, ...file })
}
