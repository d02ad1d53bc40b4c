import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { freePort } from '../network/free-port.js'
import { type PostgresAddress, postgresAddress } from './postgres-address.js'
import { messageOf } from './postgres-messages.js'
import { joinWire, type Moment, type PostgresWire } from './postgres-wire.js'

export interface CutRule {
  /** The statement with this number from now on, on any connection; or the first that matches. */
  readonly at: number | RegExp
  readonly moment: Moment
}

/** What happens to new connections. */
export type PostgresOutage =
  | 'refused'
  | 'accepted and closed'
  | 'accepted and silent'
  // `ReadyForQuery` and the fatal error come in one chunk, as from a server that is stopped right then.
  | 'ready and ended'

const READY_AND_ENDED = Buffer.concat([
  messageOf('R', Buffer.alloc(4)),
  messageOf('Z', Buffer.from('I')),
  messageOf('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0')),
])

/** A proxy in front of Postgres or pgbouncer that records the statements and simulates faults. */
export interface PostgresProxy extends PostgresAddress {
  /** The statements that clients have sent, in one line each; a simple query is one, however many it has. */
  readonly statements: readonly string[]
  /** The statements that met a rule of `cutAt`. */
  readonly cuts: readonly string[]
  /** How often a client has waited for a reply, except for the start of a connection. */
  readonly roundTrips: number
  /** The number of commits that the server has confirmed. */
  readonly commits: number
  /** The number of connections that clients have opened. */
  readonly connections: number
  /** Breaks or silences one connection, once, at one statement. Replaces an earlier rule. */
  cutAt(rule: CutRule): void
  /** Breaks all connections. */
  cut(): void
  /** Holds all data of the open connections back until `heal`. */
  hold(): void
  fail(outage: PostgresOutage): void
  /** Delays all replies by this time. */
  delayMs(milliseconds: number): void
  /** Forgets the counts. */
  reset(): void
  /** Ends all faults, and forwards what was held back. */
  heal(): Promise<void>
  stop(): Promise<void>
}

export async function startPostgresProxy(target: PostgresAddress): Promise<PostgresProxy> {
  const wires = new Set<PostgresWire>()
  const statements: string[] = []
  const cuts: string[] = []
  let counts = { roundTrips: 0, commits: 0, connections: 0 }
  let rule: CutRule | undefined
  let statementsLeft = 0
  let delayMs = 0
  let outage: PostgresOutage | undefined

  function meets({ at }: CutRule, text: string): boolean {
    if (typeof at !== 'number') return at.test(text)
    statementsLeft -= 1
    return statementsLeft === 0
  }

  function statement(text: string): Moment | undefined {
    statements.push(text)
    if (!rule || !meets(rule, text)) return undefined
    const { moment } = rule
    rule = undefined
    cuts.push(text)
    return moment
  }

  const listener = createServer({ allowHalfOpen: false, noDelay: true }, (client) => {
    counts.connections += 1
    if (outage === 'accepted and closed') {
      client.destroy()
      return
    }
    if (outage === 'ready and ended') {
      client.on('error', () => {})
      client.once('data', () => client.end(READY_AND_ENDED))
      return
    }
    const server = connect({ host: target.host, port: target.port, noDelay: true })
    const wire = joinWire(client, server, {
      statement,
      roundTrip: () => void counts.roundTrips++,
      commit: () => void counts.commits++,
      delayMs: () => delayMs,
    })
    wires.add(wire)
    client.on('close', () => {
      if (server.closed) wires.delete(wire)
    })
    server.on('close', () => {
      if (client.closed) wires.delete(wire)
    })
    if (outage === 'accepted and silent') wire.hold()
  })
  const port = await freePort()
  const listen = async (): Promise<void> => {
    listener.listen(port, '127.0.0.1')
    await once(listener, 'listening')
  }
  await listen()

  return {
    ...postgresAddress(port),
    statements,
    cuts,
    get roundTrips() {
      return counts.roundTrips
    },
    get commits() {
      return counts.commits
    },
    get connections() {
      return counts.connections
    },
    cutAt(wanted) {
      rule = wanted
      statementsLeft = typeof wanted.at === 'number' ? wanted.at : 0
    },
    cut() {
      for (const wire of wires) wire.cut()
    },
    hold() {
      for (const wire of wires) wire.hold()
    },
    fail(wanted) {
      outage = wanted
      if (wanted === 'refused') listener.close()
    },
    delayMs(milliseconds) {
      delayMs = milliseconds
    },
    reset() {
      counts = { roundTrips: 0, commits: 0, connections: 0 }
      statements.length = 0
      cuts.length = 0
    },
    async heal() {
      outage = undefined
      rule = undefined
      delayMs = 0
      if (!listener.listening) await listen()
      for (const wire of wires) wire.release()
    },
    async stop() {
      for (const wire of wires) wire.cut()
      if (listener.listening) await once(listener.close(), 'close')
    },
  }
}
