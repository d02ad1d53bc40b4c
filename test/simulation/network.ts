import { Duplex } from 'node:stream'
import { type Machine, type Simulation, Timer } from './clock.js'

/** One end of a connection. */
export interface End {
  readonly machine: Machine
  /** `sentAt` is the real time at which it left the other end. */
  onData(data: unknown, sentAt: number): void
  /** Called once, unless this end has closed the connection. `code` is Node's code of the failure. */
  onClose(code?: string): void
}

/** Where clients connect to. */
export interface Listener {
  readonly machine: Machine
  readonly isListening: boolean
  accept(connection: Connection): End
}

/** A server that keeps the records of a story. */
export interface StoreServer extends Listener {
  /** Called after a command has run, before its reply leaves, with the number of commands so far. */
  onCommand: (count: number) => void
  restart(downMs: number, lostMs: number): void
  calm(): void
}

export type Side = 'client' | 'server'
const otherSide = (side: Side): Side => (side === 'client' ? 'server' : 'client')

/** A TCP connection: bytes arrive in order or not at all. */
export class Connection {
  readonly network: Network
  readonly ends: Record<Side, End | undefined> = { client: undefined, server: undefined }
  /** The sides whose messages no longer arrive, without anybody noticing. */
  readonly silent = new Set<Side>()
  isOpen = true
  /** Until then, what is under way from the client does not arrive. */
  #heldUntil = 0
  readonly #lastArrival: Record<Side, number> = { client: 0, server: 0 }
  readonly #underWay: Record<Side, ((end: End) => void)[]> = { client: [], server: [] }
  #dropped = new Set<Side>()

  constructor(network: Network) {
    this.network = network
  }

  send(from: Side, data: unknown): void {
    const { now } = this.network.simulation
    this.#arrive(from, (end) => {
      if (this.isOpen) end.onData(data, now)
    })
    const sender = this.ends[from]?.machine
    if (sender !== undefined) this.network.onMessage(sender)
  }

  /** This side closes; the other learns of it after all that was sent before. */
  close(from: Side, code?: string): void {
    const own = this.ends[from]
    this.ends[from] = undefined
    if (own === undefined) return
    this.#arrive(from, (end) => {
      this.#end()
      end.onClose(code)
    })
    if (this.ends[otherSide(from)] === undefined) this.#end()
  }

  /** The connection breaks. What is under way from the sides in `drops` is lost. */
  cut(drops: readonly Side[]): void {
    if (!this.isOpen) return
    this.#dropped = new Set(drops)
    for (const side of ['client', 'server'] as const) {
      const end = this.ends[side]
      if (end === undefined) continue
      const heldUntil = side === 'server' ? this.#heldUntil + this.network.latencyMs() : 0
      const sentUntil = Math.max(this.#lastArrival[otherSide(side)], heldUntil)
      const at = drops.includes(otherSide(side)) ? 0 : sentUntil
      const { simulation } = this.network
      simulation.after(Math.max(at - simulation.now, this.network.latencyMs()), end.machine, () => {
        if (this.ends[side] !== end) return
        this.ends[side] = undefined
        if (this.ends[otherSide(side)] === undefined) this.#end()
        end.onClose('ECONNRESET')
      })
    }
  }

  /** What is under way from the client arrives only after `ms`. */
  hold(ms: number): void {
    this.#heldUntil = this.network.simulation.now + ms
  }

  #end(): void {
    this.isOpen = false
    this.network.connections.delete(this)
  }

  #arrive(from: Side, deliver: (end: End) => void): void {
    const to = this.ends[otherSide(from)]
    if (to === undefined || this.silent.has(from) || this.#dropped.has(from)) return
    const { simulation } = this.network
    const sender = this.ends[from]?.machine
    const at = Math.max(
      simulation.now + this.network.latencyMs() + to.machine.distanceMs + (sender?.distanceMs ?? 0),
      this.#lastArrival[from],
      this.network.healsAt(sender, to.machine),
    )
    this.#lastArrival[from] = at
    this.#underWay[from].push(deliver)
    const arrive = (): void => {
      const isHeld = from === 'client' && this.#heldUntil > simulation.now
      if (isHeld) {
        simulation.at(this.#heldUntil, to.machine, arrive)
        return
      }
      // The oldest, whichever was to arrive now: a machine that froze meanwhile may have put them in another order.
      const next = this.#underWay[from].shift()
      if (this.silent.has(from) || this.#dropped.has(from)) return
      if (this.ends[otherSide(from)] === to) next?.(to)
    }
    simulation.at(at, to.machine, arrive)
  }
}

/** How the messages of a story travel. */
export interface Weather {
  readonly latencyMs: number
  /** How often a message is late by up to `delayMs`. */
  readonly delayChance: number
  readonly delayMs: number
}

export class Network {
  readonly simulation: Simulation
  readonly connections = new Set<Connection>()
  /** Called when a message is under way. */
  onMessage: (sender: Machine) => void = () => {}
  #weather: Weather
  readonly #partitions = new Map<string, number>()

  constructor(simulation: Simulation, weather: Weather) {
    this.simulation = simulation
    this.#weather = weather
  }

  calm(): void {
    this.#weather = { ...this.#weather, delayChance: 0 }
    this.#partitions.clear()
  }

  latencyMs(): number {
    const { random } = this.simulation
    const { latencyMs, delayChance, delayMs } = this.#weather
    const usual = latencyMs * (0.5 + random.next())
    return random.chance(delayChance) ? usual + random.next() * delayMs : usual
  }

  /** Nothing passes between the two machines for so long, or until an earlier partition of them ends. */
  separate(one: Machine, other: Machine, ms: number): void {
    const pair = pairOf(one, other)
    const until = Math.max(this.#partitions.get(pair) ?? 0, this.simulation.now + ms)
    this.#partitions.set(pair, until)
  }

  healsAt(one: Machine | undefined, other: Machine): number {
    const until = one && this.#partitions.get(pairOf(one, other))
    return until === undefined || until <= this.simulation.now ? 0 : until + this.latencyMs()
  }

  /** Connects, or fails with `ECONNREFUSED`; `onConnect` is called when it has. */
  connect(client: End, listener: Listener, onConnect: () => void): Connection {
    const connection = new Connection(this)
    connection.ends.client = client
    this.connections.add(connection)
    const { simulation } = this
    const answerMs = (): number =>
      Math.max(this.latencyMs(), this.healsAt(client.machine, listener.machine) - simulation.now)
    simulation.after(answerMs(), listener.machine, () => {
      const isAccepted = listener.isListening && connection.ends.client === client
      if (isAccepted) connection.ends.server = listener.accept(connection)
      simulation.after(answerMs(), client.machine, () => {
        if (connection.ends.client !== client) return
        if (isAccepted) onConnect()
        else {
          this.connections.delete(connection)
          connection.isOpen = false
          client.onClose('ECONNREFUSED')
        }
      })
    })
    return connection
  }

  /** Its connections end with a machine. A machine that falls silent ends none. */
  ended(machine: Machine): void {
    for (const connection of [...this.connections]) {
      for (const side of ['client', 'server'] as const) {
        if (connection.ends[side]?.machine === machine) connection.close(side, 'ECONNRESET')
      }
    }
  }
}

/** The error of a socket. */
export const errorOf = (code: string): Error =>
  Object.assign(new Error(code), { code, syscall: code === 'ECONNREFUSED' ? 'connect' : 'read' })

const pairOf = (one: Machine, other: Machine): string => [one.name, other.name].sort().join(' ')

/** As `net.Socket`, as far as ioredis and pg use it. */
export class SimulatedSocket extends Duplex implements End {
  readonly machine: Machine
  connecting = true
  readonly #connection: Connection
  #timeout: Timer | undefined
  #timeoutMs = 0

  constructor(machine: Machine, network: Network, listener: Listener) {
    super()
    this.machine = machine
    this.#connection = network.connect(this, listener, () => {
      this.connecting = false
      this.#restartTimeout()
      this.emit('connect')
    })
  }

  onData(data: unknown): void {
    this.#restartTimeout()
    this.push(data)
  }

  onClose(code?: string): void {
    if (code === undefined) this.end()
    else this.destroy(errorOf(code))
  }

  setTimeout(ms: number, listener?: () => void): this {
    if (listener !== undefined) this.once('timeout', listener)
    this.#timeoutMs = ms
    this.#restartTimeout()
    return this
  }

  /** It connects from its beginning. */
  connect(): this {
    return this
  }

  ref(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  override _read(): void {}

  override _write(data: Buffer, _encoding: BufferEncoding, written: () => void): void {
    this.#connection.send('client', data)
    written()
  }

  override _final(ended: () => void): void {
    this.#connection.close('client')
    ended()
    this.push(null)
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#timeout?.clear()
    this.#connection.close('client', 'ECONNRESET')
    destroyed(error)
  }

  #restartTimeout(): void {
    this.#timeout?.clear()
    this.#timeout = undefined
    if (this.#timeoutMs === 0 || this.destroyed) return
    this.#timeout = new Timer(this.machine, () => this.emit('timeout'), { ms: this.#timeoutMs })
  }
}
