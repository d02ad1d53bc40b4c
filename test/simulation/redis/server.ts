import { createHash } from 'node:crypto'
import type { Machine } from '../clock.js'
import type { Connection, End, Listener } from '../network.js'
import { Keyspace, type Reply, ReplyError, runScript, Status, type Stored } from './commands.js'

interface Replica {
  values: Map<string, Stored>
  offset: number
  lastArrival: number
  /** Until then nothing reaches it. */
  stalledUntil: number
}

/** Who sent a command, and at what real time. */
interface Origin {
  readonly by: string
  readonly sentAt: number
}

/** A command has found a key, or written it. `now` is in ms of the server's clock. */
export interface Access extends Origin {
  readonly key: string
  readonly now: number
  readonly before: Stored | undefined
  /** The same object as `before` unless it was written. */
  readonly after: Stored | undefined
  /** Whether the server had no memory left. */
  readonly isFull: boolean
}

/** Which fault has lost what its server had stored. */
export type Loss = 'flush' | 'failover' | 'restart'

interface Client {
  readonly connection: Connection
  readonly name: string
  /** The commands behind a `WAIT`. */
  readonly queue: { readonly words: string[]; readonly sentAt: number }[]
  writtenOffset: number
  isWaiting: boolean
}

export interface RedisOptions {
  readonly replicas: number
  /** How long a write takes to a replica, at most, in ms. */
  readonly lagMs: number
}

/** A Redis server with replicas, behind one address. */
export class RedisServer implements Listener {
  readonly machine: Machine
  readonly keys = new Keyspace()
  isListening = true
  /** Called after a command has run, before its reply leaves, with the number of commands so far. */
  onCommand: (count: number) => void = () => {}
  onAccess: (access: Access) => void = () => {}
  onLoss: (what: Loss, keys: ReadonlySet<string>) => void = () => {}
  #commands = 0
  #lagMs: number
  readonly #replicas: Replica[]
  readonly #clients = new Set<Client>()
  readonly #waiting = new Set<() => void>()
  readonly #scripts = new Map<string, string>()
  /** Of the simulated time, at the last command. */
  #timeUs = 0
  #offset = 0
  /** Grows with every failover: what an old primary has sent no longer arrives. */
  #epoch = 0
  #journal: { readonly at: number; readonly key: string; readonly before: Stored | undefined }[] =
    []

  constructor(machine: Machine, { replicas, lagMs }: RedisOptions) {
    this.machine = machine
    this.#lagMs = lagMs
    this.#replicas = Array.from({ length: replicas }, () => {
      return { values: new Map(), offset: 0, lastArrival: 0, stalledUntil: 0 }
    })
  }

  accept(connection: Connection): End {
    const name = connection.ends.client?.machine.name ?? ''
    const client: Client = { connection, name, queue: [], writtenOffset: 0, isWaiting: false }
    this.#clients.add(client)
    return {
      machine: this.machine,
      onData: (data, sentAt) => {
        for (const words of commandsOf(data as Buffer)) client.queue.push({ words, sentAt })
        this.#serve(client)
      },
      onClose: () => {
        this.#clients.delete(client)
        connection.close('server')
      },
    }
  }

  calm(): void {
    this.#lagMs = 1
    this.keys.isFull = false
    for (const replica of this.#replicas) replica.stalledUntil = 0
  }

  /** Nothing reaches its replicas for a while. */
  stallReplicas(ms: number): void {
    for (const replica of this.#replicas) replica.stalledUntil = this.machine.simulation.now + ms
  }

  /** The replica that has most becomes the primary. What it does not have is lost. */
  failOver(downMs: number): void {
    const [best] = [...this.#replicas].sort((one, other) => other.offset - one.offset)
    if (best === undefined) return
    this.#lose('failover', new Map(best.values))
    this.#goDown(downMs)
  }

  /** The server starts again from its file, without what it wrote in the last `lostMs`. */
  restart(downMs: number, lostMs: number): void {
    const { now } = this.machine.simulation
    const values = new Map(this.keys.values)
    for (const { at, key, before } of this.#journal.toReversed()) {
      if (at < now - lostMs) break
      store(values, key, before)
    }
    this.#lose('restart', values)
    this.#goDown(downMs)
  }

  flush(): void {
    this.#lose('flush', new Map())
  }

  #lose(what: Loss, kept: Map<string, Stored>): void {
    const { values } = this.keys
    const names = [...values.keys(), ...kept.keys()]
    this.onLoss(what, new Set(names.filter((name) => values.get(name) !== kept.get(name))))
    this.keys.values = kept
    this.#epoch += 1
    this.#journal = []
    for (const replica of this.#replicas) {
      replica.values = new Map(kept)
      replica.offset = this.#offset
    }
  }

  #goDown(downMs: number): void {
    this.isListening = false
    this.#scripts.clear()
    for (const { connection } of this.#clients) connection.cut(['client', 'server'])
    this.#clients.clear()
    this.#waiting.clear()
    this.machine.after(downMs, () => {
      this.isListening = true
    })
  }

  #serve(client: Client): void {
    let replies = ''
    while (!client.isWaiting) {
      const command = client.queue.shift()
      if (command === undefined) break
      const { words, sentAt } = command
      if (words[0]?.toUpperCase() === 'WAIT') this.#wait(client, words)
      else {
        const before = this.#offset
        replies += encode(this.#execute(words, { by: client.name, sentAt }))
        if (this.#offset > before) client.writtenOffset = this.#offset
        this.onCommand(++this.#commands)
      }
    }
    if (replies !== '') this.#send(client, replies)
  }

  #send({ connection }: Client, replies: string): void {
    connection.send('server', Buffer.from(replies, 'latin1'))
  }

  #wait(client: Client, [, min = '0', timeoutMs = '0']: readonly string[]): void {
    const count = (): number =>
      this.#replicas.filter(({ offset }) => offset >= client.writtenOffset).length
    client.isWaiting = true
    let cancel = (): void => {}
    const answer = (): void => {
      this.#waiting.delete(check)
      cancel()
      client.isWaiting = false
      this.#send(client, encode(count()))
      this.#serve(client)
    }
    const check = (): void => {
      if (count() >= Number(min)) answer()
    }
    this.#waiting.add(check)
    if (Number(timeoutMs) > 0)
      cancel = this.machine.after(Number(timeoutMs), () => {
        if (this.#waiting.has(check)) answer()
      })
    // Not at once: the replies to earlier commands leave first.
    this.machine.after(0, () => {
      if (this.#waiting.has(check)) check()
    })
  }

  #execute(words: readonly string[], origin: Origin): Reply {
    const { keys } = this
    const timeUs = Math.floor(this.machine.wallMs() * 1000)
    // A command takes at least 1 µs, and may follow another at the same simulated time.
    keys.timeUs = timeUs === this.#timeUs ? keys.timeUs + 1 : timeUs
    this.#timeUs = timeUs
    keys.written.clear()
    const reply = this.#reply(words)
    const [, , , key = ''] = words
    for (const name of new Set([key, ...keys.written.keys()])) {
      const after = keys.values.get(name)
      const before = keys.written.has(name) ? keys.written.get(name) : after
      const { timeMs: now, isFull } = keys
      this.onAccess({ ...origin, key: name, now, before, after, isFull })
    }
    if (keys.written.size > 0) this.#replicate()
    return reply
  }

  /** Runs `EVAL` or `EVALSHA`: the package sends nothing else, besides `WAIT`. */
  #reply([name = '', text = '', count = '0', ...words]: readonly string[]): Reply {
    const isEval = name.toUpperCase() === 'EVAL'
    if (isEval) this.#scripts.set(createHash('sha1').update(text).digest('hex'), text)
    const source = isEval ? text : this.#scripts.get(text)
    if (source === undefined) return new ReplyError('NOSCRIPT No matching script. Please use EVAL.')
    const names = words.splice(0, Number(count))
    return runScript(this.keys, source, { names, args: words })
  }

  #replicate(): void {
    const { keys, machine } = this
    const { simulation } = machine
    this.#offset += 1
    const offset = this.#offset
    const epoch = this.#epoch
    const written = [...keys.written.keys()].map((key) => [key, keys.values.get(key)] as const)
    for (const [key, before] of keys.written) {
      this.#journal.push({ at: simulation.now, key, before })
    }
    for (const replica of this.#replicas) {
      const lag = simulation.random.next() * this.#lagMs
      const at = Math.max(simulation.now + lag, replica.lastArrival, replica.stalledUntil)
      replica.lastArrival = at
      simulation.after(at - simulation.now, machine, () => {
        if (epoch !== this.#epoch) return
        for (const [key, stored] of written) store(replica.values, key, stored)
        replica.offset = offset
        for (const check of [...this.#waiting]) check()
      })
    }
  }
}

function store(values: Map<string, Stored>, key: string, stored: Stored | undefined): void {
  if (stored === undefined) values.delete(key)
  else values.set(key, stored)
}

/** The commands that a client has sent: each an array of bulk strings. ioredis writes whole commands. */
function* commandsOf(data: Buffer): Generator<string[]> {
  const text = data.toString('latin1')
  let at = 0
  const size = (): number => {
    const start = at + 1
    at = text.indexOf('\r\n', at) + 2
    return Number(text.slice(start, at))
  }
  const word = (): string => {
    const length = size()
    at += length + 2
    return text.slice(at - length - 2, at - 2)
  }
  while (at < text.length) yield Array.from({ length: size() }, word)
}

function encode(reply: Reply): string {
  if (reply === null) return '$-1\r\n'
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`
  if (reply instanceof Status) return `+${reply.text}\r\n`
  if (reply instanceof ReplyError) return `-${reply.message}\r\n`
  return `*${reply.length}\r\n${reply.map(encode).join('')}`
}
