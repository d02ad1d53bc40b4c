import type { Socket } from 'node:net'
import {
  asksForEncryption,
  commandTag,
  followStatements,
  splitMessages,
  type WireMessage,
} from './postgres-messages.js'

/** When a connection breaks or falls silent, relative to a statement. */
export const MOMENTS = [
  // The server never sees the statement.
  'before',
  // The server has run the statement, and its reply is lost.
  'after',
  // The client gets the first half of the reply.
  'in the reply',
  // The connection stays open, but nothing gets through, beginning with the statement.
  'silent before',
] as const
export type Moment = (typeof MOMENTS)[number]

export interface WireEvents {
  /** Called before the server gets a statement. Returns the fault of the connection; `undefined` for none. */
  statement(text: string): Moment | undefined
  roundTrip(): void
  commit(): void
  /** Returns the delay of replies. */
  delayMs(): number
}

export interface PostgresWire {
  cut(): void
  /** Holds all data back, in both directions, until `release`. */
  hold(): void
  /** Forwards what was held back. */
  release(): void
}

/** The messages of a client up to a Sync or a simple query, and the server's reply to them. */
interface Exchange {
  fault?: Moment
  readonly reply: Buffer[]
}

const RUNS_SOMETHING = /[PBEQ]/

/** Joins a client and a server. If one socket closes, so does the other. */
export function joinWire(client: Socket, server: Socket, events: WireEvents): PostgresWire {
  const fromClient = splitMessages('client')
  const fromServer = splitMessages('server')
  const statementOf = followStatements()
  const sent: Exchange[] = []
  let current: Exchange = { reply: [] }
  const held: (() => void)[] = []
  let isHeld = false
  /** Whether the server gets no more messages, because a statement met a fault. */
  let isDeaf = false
  let lastType = ''
  let isAnswered = false

  const cut = (): void => {
    isDeaf = true
    client.destroy()
    server.destroy()
  }
  const inTurn = (work: () => void): void => {
    if (isHeld) held.push(work)
    else work()
  }
  const release = (): void => {
    isHeld = false
    while (!isHeld) {
      const work = held.shift()
      if (!work) return
      work()
    }
  }
  const afterDelay = (work: () => void): void => {
    const delayMs = events.delayMs()
    if (delayMs === 0) work()
    else setTimeout(() => inTurn(work), delayMs)
  }

  function countTrip({ type }: WireMessage): void {
    if (isAnswered && type !== 'X') events.roundTrip()
    if (type !== 'X') isAnswered = false
    lastType = type
  }

  function passToServer(message: WireMessage): void {
    if (isDeaf) return
    if (current.fault !== undefined && RUNS_SOMETHING.test(message.type)) {
      // The client has sent no Sync, so there is no reply to wait for. The server runs what it has, then ends.
      isDeaf = true
      server.end()
      return
    }
    const text = statementOf(message)
    const fault = text === undefined ? undefined : events.statement(text)
    if (fault === 'before') {
      cut()
    } else if (fault === 'silent before') {
      isHeld = true
      held.unshift(() => forward(message))
    } else {
      if (fault) current.fault = fault
      forward(message)
    }
  }

  function forward(message: WireMessage): void {
    countTrip(message)
    if (asksForEncryption(message)) fromServer.expectByte()
    server.write(message.bytes)
    if (message.type !== 'Q' && message.type !== 'S') return
    isDeaf = current.fault !== undefined
    sent.push(current)
    current = { reply: [] }
  }

  function passToClient(message: WireMessage): void {
    const isEnd = message.type === 'Z'
    if (isEnd || lastType === 'H') isAnswered = true
    if (commandTag(message) === 'COMMIT') events.commit()
    const exchange = sent[0] ?? current
    if (isEnd) sent.shift()
    if (exchange.fault === undefined) {
      afterDelay(() => client.write(message.bytes))
      return
    }
    exchange.reply.push(message.bytes)
    if (!isEnd) return
    const reply = Buffer.concat(exchange.reply)
    if (exchange.fault === 'after') cut()
    else client.write(reply.subarray(0, Math.ceil(reply.length / 2)), cut)
  }

  client.on('data', (chunk) => {
    for (const message of fromClient.push(chunk)) inTurn(() => passToServer(message))
  })
  server.on('data', (chunk) => {
    for (const message of fromServer.push(chunk)) inTurn(() => passToClient(message))
  })
  // What a client sent before it disconnected still reaches the server.
  client.on('close', () => inTurn(() => server.end()))
  server.on('close', () => inTurn(() => afterDelay(() => client.end())))
  for (const socket of [client, server]) socket.on('error', () => {})

  return {
    cut,
    hold() {
      isHeld = true
    },
    release,
  }
}
