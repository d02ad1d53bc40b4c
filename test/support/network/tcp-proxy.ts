import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from './free-port.js'

/** Ways in which a server is unreachable. */
export const OUTAGES = [
  'refused',
  'accepted and closed',
  'accepted and silent for good',
  'cut in the middle of a reply',
  'reset',
] as const
export type Outage = (typeof OUTAGES)[number]

/** A wire between a client and a server on which faults happen. */
export interface TcpProxy {
  readonly host: string
  readonly port: number
  /** Connections that clients have opened so far. */
  readonly opened: number
  /** Breaks all connections. */
  cut(): void
  /** The next answer that holds `text` (any, without it) never comes: the connection breaks instead. */
  loseReply(text?: string): void
  /** No answer that holds `text` comes any more: its connection breaks instead. */
  loseReplies(text: string): void
  /** Nothing gets through, in either direction, until `release`. */
  hold(): void
  /** What was held gets through, also from connections whose client has gone. */
  release(): void
  /** Breaks all connections for their clients. What was held stays so, while new connections work. */
  strand(): Promise<void>
  /** Answers come this much later. */
  delayReplies(milliseconds: number): void
  /** Makes the server unreachable for connections that there are and for new ones. */
  fail(outage: Outage): Promise<void>
  /** Ends the outage for new connections. What was silent stays so. */
  restore(): Promise<void>
  close(): Promise<void>
}

interface Wire {
  readonly client: Socket
  readonly server: Socket
}

export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const wires = new Set<Wire>()
  const held: (() => void)[] = []
  let isHeld = false
  let lost: { readonly text: string; readonly isForGood: boolean } | undefined
  let delayMs = 0
  let opened = 0
  let outage: Outage | undefined
  /** They fell silent in an outage. */
  const silent = new WeakSet<Wire>()

  /** At once, or when the wire is released. */
  const inTurn = (send: () => void): void => {
    if (isHeld) held.push(send)
    else send()
  }
  const cutWire = ({ client, server }: Wire): void => {
    client.destroy()
    server.destroy()
  }

  /** What an outage does to a connection as soon as there is one. */
  function strike(wire: Wire): void {
    if (outage === 'accepted and silent for good') silent.add(wire)
    else if (outage === 'reset') {
      wire.client.resetAndDestroy()
      wire.server.destroy()
    } else if (outage === 'refused' || outage === 'accepted and closed') cutWire(wire)
  }

  function forwardReply(wire: Wire, chunk: Buffer): void {
    if (silent.has(wire)) return
    if (outage === 'cut in the middle of a reply') {
      wire.client.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => cutWire(wire))
      return
    }
    if (lost !== undefined && chunk.includes(lost.text)) {
      if (!lost.isForGood) lost = undefined
      cutWire(wire)
      return
    }
    if (delayMs === 0) inTurn(() => wire.client.write(chunk))
    else setTimeout(() => inTurn(() => wire.client.write(chunk)), delayMs)
  }

  const listener = createServer((client) => {
    opened++
    const wire = { client, server: connect(target) }
    wires.add(wire)
    const { server } = wire
    client.on('data', (chunk) => inTurn(() => server.write(chunk)))
    server.on('data', (chunk) => forwardReply(wire, chunk))
    // What a client has sent before it went still arrives.
    client.on('close', () => inTurn(() => server.end()))
    server.on('close', () => {
      wires.delete(wire)
      client.destroy()
    })
    for (const socket of [client, server]) socket.on('error', () => {})
    strike(wire)
  })
  const port = await freePort()
  const listen = async (): Promise<void> => {
    listener.listen(port, '127.0.0.1')
    await once(listener, 'listening')
  }
  await listen()

  return {
    host: '127.0.0.1',
    port,
    get opened() {
      return opened
    },
    cut: () => wires.forEach(cutWire),
    loseReply(text = '') {
      lost = { text, isForGood: false }
    },
    loseReplies(text) {
      lost = { text, isForGood: true }
    },
    hold() {
      isHeld = true
    },
    release() {
      isHeld = false
      for (const send of held.splice(0)) send()
    },
    async strand() {
      const clients = [...wires].map(({ client }) => client)
      await Promise.all(clients.map((client) => once(client.destroy(), 'close')))
      isHeld = false
    },
    delayReplies(milliseconds) {
      delayMs = milliseconds
    },
    async fail(wanted) {
      outage = wanted
      const closed = wanted === 'refused' ? once(listener.close(), 'close') : undefined
      wires.forEach(strike)
      await closed
    },
    async restore() {
      outage = undefined
      if (!listener.listening) await listen()
    },
    async close() {
      wires.forEach(cutWire)
      if (listener.listening) await once(listener.close(), 'close')
    },
  }
}
