/*
 * The time of a story. Everything that happens is an event at a time, of a machine: a timer that fires, bytes that
 * arrive, a fault. One event runs at a time, and all microtasks that follow from it run before the next one, so the
 * order of a story depends on its seed alone.
 */

/** A random number generator with a seed (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  /** An integer from 0 to `below`, exclusive. */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  between(min: number, max: number): number {
    return min + this.next() * (max - min)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T
  }

  uuid(): string {
    const hex = Array.from({ length: 4 }, () =>
      (this.next() * 2 ** 32).toString(16).padStart(8, '0').slice(0, 8),
    ).join('')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  }
}

interface Event {
  at: number
  readonly machine: Machine
  readonly work: () => void
  isCancelled: boolean
}

/** The wall clock at the start of every story, in ms since the epoch. */
const EPOCH_MS = 1_800_000_000_000
/** A story that has this many events never ends. */
const MAX_EVENTS = 200_000

export class Simulation {
  /** The real time in ms since the start. No machine can read it. */
  now = 0
  readonly random: Random
  readonly machines: Machine[] = []
  /** The machine whose event runs. */
  current: Machine | undefined
  events = 0
  readonly #queue: Event[] = []

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  machine(name: string, clock: Clock = STEADY): Machine {
    const machine = new Machine(this, name, clock)
    this.machines.push(machine)
    return machine
  }

  /** A machine whose events leave no promise and no `process.nextTick` callback behind. */
  server(name: string, clock: Clock = STEADY): Machine {
    const machine = this.machine(name, clock)
    machine.hasMicrotasks = false
    return machine
  }

  /** Runs `work` on the machine after `ms` of real time. Returns a function that cancels it. */
  after(ms: number, machine: Machine, work: () => void): () => void {
    return this.at(this.now + Math.max(0, ms), machine, work)
  }

  /** As `after`, at a time: two events at the same time keep their order, which `after` may lose by rounding. */
  at(at: number, machine: Machine, work: () => void): () => void {
    const event = { at, machine, work, isCancelled: false }
    this.#enqueue(event)
    return () => {
      event.isCancelled = true
    }
  }

  /** Of events at the same time, the first one that was begun comes first. */
  #enqueue(event: Event): void {
    const before = this.#queue.findLastIndex(({ at }) => at <= event.at)
    this.#queue.splice(before + 1, 0, event)
  }

  /** Lets so much time pass. */
  async pass(ms: number, machine: Machine): Promise<void> {
    let isOver = false
    this.after(ms, machine, () => {
      isOver = true
    })
    await this.run(() => isOver)
  }

  /** Lets time pass until nothing is left to happen, or until `isOver`. */
  async run(isOver: () => boolean = () => false): Promise<void> {
    while (!isOver()) {
      const event = this.#queue.shift()
      if (event === undefined) return
      const { machine } = event
      if (event.isCancelled || !machine.isAlive) continue
      this.now = Math.max(this.now, event.at)
      if (machine.frozenUntil > this.now) {
        event.at = machine.frozenUntil
        this.#enqueue(event)
        continue
      }
      if (++this.events > MAX_EVENTS) throw new Error('the story never ends')
      this.current = machine
      event.work()
      if (machine.hasMicrotasks) await microtasks()
      this.current = undefined
    }
  }
}

/** All promises and `process.nextTick` callbacks run before the next callback of the real event loop. */
const realSetImmediate = setImmediate
const microtasks = (): Promise<void> => new Promise((resolve) => realSetImmediate(resolve))

export interface Clock {
  /** Seconds of the machine for each real second. */
  readonly rate: number
  /** How far its wall clock is ahead, in ms. */
  readonly aheadMs: number
}

export const STEADY: Clock = { rate: 1, aheadMs: 0 }

/** A process, or a server. What it has begun ends with it. */
export class Machine {
  readonly name: string
  isAlive = true
  hasMicrotasks = true
  frozenUntil = 0
  /** How much longer every message from and to it takes. */
  distanceMs = 0
  readonly timers = new Set<Timer>()
  readonly simulation: Simulation
  readonly #bootedAt: number
  readonly #rate: number
  #aheadMs: number

  constructor(simulation: Simulation, name: string, { rate, aheadMs }: Clock) {
    this.simulation = simulation
    this.name = name
    this.#rate = rate
    this.#aheadMs = aheadMs
    this.#bootedAt = simulation.now
  }

  /** As `performance.now`: no jump changes it. */
  monotonicMs(): number {
    return (this.simulation.now - this.#bootedAt) * this.#rate
  }

  wallMs(): number {
    return EPOCH_MS + this.#aheadMs + this.simulation.now * this.#rate
  }

  jump(ms: number): void {
    this.#aheadMs += ms
  }

  kill(): void {
    this.isAlive = false
    this.timers.clear()
  }

  freeze(ms: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.simulation.now + ms)
  }

  after(ms: number, work: () => void): () => void {
    return this.simulation.after(ms / this.#rate, this, work)
  }
}

/** What `setTimeout` returns. */
export class Timer {
  readonly #machine: Machine
  #cancel: () => void = () => {}

  constructor(
    machine: Machine,
    work: () => void,
    { ms, repeats = false }: { ms: number; repeats?: boolean },
  ) {
    this.#machine = machine
    machine.timers.add(this)
    const delayMs = Math.max(1, ms)
    const arm = (): void => {
      this.#cancel = machine.after(delayMs, () => {
        if (repeats) arm()
        else machine.timers.delete(this)
        work()
      })
    }
    arm()
  }

  unref(): this {
    return this
  }

  clear(): void {
    this.#machine.timers.delete(this)
    this.#cancel()
  }
}
