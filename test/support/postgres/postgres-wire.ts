import type { Socket } from 'node:net'
import {
  asksForEncryption,
  commandTag,
  followStatements,
  splitMessages,
  type WireMessage,
} from './postgres-messages.js'

/** When a connection breaks or falls silent, as seen from a statement. */
export const MOMENTS = [
  // The server never sees the statement.
  'before',
  // The server has run it, its reply is lost.
  'after',
  // The first half of the reply comes.
  'in the reply',
  // Nothing breaks: from the statement on, nothing gets through.
  'silent before',
] as const
export type Moment = (typeof MOMENTS)[number]

export interface WireEvents {
  /** A client is about to run a statement; returns what happens to the connection. */
  statement(text: string): Moment | undefined
  roundTrip(): void
  commit(): void
  /** Replies are late by this much. */
  delayMs(): number
}

export interface PostgresWire {
  cut(): void
  /** Nothing gets through, in either direction, until `release`. */
  hold(): void
  /** What was held gets through. */
  release(): void
}

/** What a client sends up to the point from which the server answers (a Sync or a simple query). */
interface Exchange {
  fate?: Moment
  readonly reply: Buffer[]
}

const RUNS_SOMETHING = /[PBEQ]/

/** Joins a client and a server; the sockets close with each other. */
export function joinWire(client: Socket, server: Socket, events: WireEvents): PostgresWire {
  const fromClient = splitMessages('client')
  const fromServer = splitMessages('server')
  const statementOf = followStatements()
  const sent: Exchange[] = []
  let current: Exchange = { reply: [] }
  const held: (() => void)[] = []
  let isHeld = false
  /** What comes after the last statement that may reach the server. */
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
  const late = (work: () => void): void => {
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
    if (current.fate !== undefined && RUNS_SOMETHING.test(message.type)) {
      // Without a Sync there is no reply to wait for: the server ends when it has done the rest.
      isDeaf = true
      server.end()
      return
    }
    const text = statementOf(message)
    const fate = text === undefined ? undefined : events.statement(text)
    if (fate === 'before') {
      cut()
    } else if (fate === 'silent before') {
      isHeld = true
      held.unshift(() => forward(message))
    } else {
      if (fate) current.fate = fate
      forward(message)
    }
  }

  function forward(message: WireMessage): void {
    countTrip(message)
    if (asksForEncryption(message)) fromServer.expectByte()
    server.write(message.bytes)
    if (message.type !== 'Q' && message.type !== 'S') return
    isDeaf = current.fate !== undefined
    sent.push(current)
    current = { reply: [] }
  }

  function passToClient(message: WireMessage): void {
    const isEnd = message.type === 'Z'
    if (isEnd || lastType === 'H') isAnswered = true
    if (commandTag(message) === 'COMMIT') events.commit()
    const exchange = sent[0] ?? current
    if (isEnd) sent.shift()
    if (exchange.fate === undefined) {
      late(() => client.write(message.bytes))
      return
    }
    exchange.reply.push(message.bytes)
    if (!isEnd) return
    const reply = Buffer.concat(exchange.reply)
    if (exchange.fate === 'after') cut()
    else client.write(reply.subarray(0, Math.ceil(reply.length / 2)), cut)
  }

  client.on('data', (chunk) => {
    for (const message of fromClient.push(chunk)) inTurn(() => passToServer(message))
  })
  server.on('data', (chunk) => {
    for (const message of fromServer.push(chunk)) inTurn(() => passToClient(message))
  })
  // What a client has sent before it went still arrives.
  client.on('close', () => inTurn(() => server.end()))
  server.on('close', () => inTurn(() => late(() => client.end())))
  for (const socket of [client, server]) socket.on('error', () => {})

  return {
    cut,
    hold() {
      isHeld = true
    },
    release,
  }
}
