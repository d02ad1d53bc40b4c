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

/** A proxy between clients and a server that simulates faults of the network. */
export interface TcpProxy {
  readonly host: string
  readonly port: number
  /** The number of connections that clients have opened so far. */
  readonly opened: number
  /** Breaks all connections. */
  cut(): void
  /**
   * Breaks the connection instead of forwarding the next reply that contains `text`. Default: any reply. `outage` begins
   * with it.
   */
  loseReply(text?: string, outage?: Outage): void
  /** From now on, breaks the connection instead of forwarding a reply that contains `text`. */
  loseReplies(text: string): void
  /** Holds all data back, in both directions, until `release`. */
  hold(): void
  /** Forwards what was held back, also the data of clients that have disconnected. */
  release(): void
  /** Breaks all connections on the side of the clients. Held data stays held; new connections work. */
  strand(): Promise<void>
  /** From now on, overwrites the first `text` of each reply with as many `x`. */
  blank(text: string): void
  /** Delays all replies by this time. */
  delayReplies(milliseconds: number): void
  /** Makes the server unreachable, for open and for new connections. */
  fail(outage: Outage): Promise<void>
  /** Ends the outage for new connections. Connections that fell silent stay silent. */
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
  let loss: { text: string; isForGood: boolean; outage?: Outage | undefined } | undefined
  let blanked: string | undefined
  let delayMs = 0
  let opened = 0
  let outage: Outage | undefined
  /** The connections that fell silent in an outage. */
  const silent = new WeakSet<Wire>()

  /** Sends at once or, while data is held back, on `release`. */
  const sendInTurn = (send: () => void): void => {
    if (isHeld) held.push(send)
    else send()
  }
  const cutWire = ({ client, server }: Wire): void => {
    client.destroy()
    server.destroy()
  }

  /** Applies the outage to a connection, unless the outage waits for a reply. */
  function applyOutage(wire: Wire): void {
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
    if (loss !== undefined && chunk.includes(loss.text)) {
      if (loss.outage !== undefined) void fail(loss.outage)
      if (!loss.isForGood) loss = undefined
      cutWire(wire)
      return
    }
    const index = blanked === undefined ? -1 : chunk.indexOf(blanked)
    if (blanked !== undefined && index !== -1) chunk.fill('x', index, index + blanked.length)
    if (delayMs === 0) sendInTurn(() => wire.client.write(chunk))
    else setTimeout(() => sendInTurn(() => wire.client.write(chunk)), delayMs)
  }

  async function fail(wanted: Outage): Promise<void> {
    outage = wanted
    const closed = wanted === 'refused' ? once(listener.close(), 'close') : undefined
    wires.forEach(applyOutage)
    await closed
  }

  const listener = createServer((client) => {
    opened++
    const wire = { client, server: connect(target) }
    wires.add(wire)
    const { server } = wire
    client.on('data', (chunk) => sendInTurn(() => server.write(chunk)))
    server.on('data', (chunk) => forwardReply(wire, chunk))
    // What a client sent before it disconnected still reaches the server.
    client.on('close', () => sendInTurn(() => server.end()))
    server.on('close', () => {
      wires.delete(wire)
      client.destroy()
    })
    for (const socket of [client, server]) socket.on('error', () => {})
    applyOutage(wire)
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
    loseReply(text = '', outage) {
      loss = { text, isForGood: false, outage }
    },
    loseReplies(text) {
      loss = { text, isForGood: true }
    },
    blank(text) {
      blanked = text
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
    fail,
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
