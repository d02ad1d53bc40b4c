import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

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
  /** Nothing gets through, in either direction, until `release`. */
  hold(): void
  /** What was held gets through, also from connections whose client has gone. */
  release(): void
  /** Answers come this much later. */
  delayReplies(milliseconds: number): void
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
  let lost: string | undefined
  let delayMs = 0
  let opened = 0

  /** At once, or when the wire is released. */
  const inTurn = (send: () => void): void => {
    if (isHeld) held.push(send)
    else send()
  }
  const cutWire = ({ client, server }: Wire): void => {
    client.destroy()
    server.destroy()
  }

  function forwardReply(wire: Wire, chunk: Buffer): void {
    if (lost !== undefined && chunk.includes(lost)) {
      lost = undefined
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
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  return {
    host: '127.0.0.1',
    port: (listener.address() as AddressInfo).port,
    get opened() {
      return opened
    },
    cut: () => wires.forEach(cutWire),
    loseReply(text = '') {
      lost = text
    },
    hold() {
      isHeld = true
    },
    release() {
      isHeld = false
      for (const send of held.splice(0)) send()
    },
    delayReplies(milliseconds) {
      delayMs = milliseconds
    },
    async close() {
      listener.close()
      wires.forEach(cutWire)
      await once(listener, 'close')
    },
  }
}
