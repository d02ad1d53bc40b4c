import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Callers } from './callers.js'
import { strike } from './happenings.js'
import type { Package } from './load.js'
import { Operator } from './operator.js'
import type { Leftovers } from './oracle.js'
import { Receiver } from './receiver.js'
import { SETTLE_MS, Stage } from './stage.js'
import { CALM_AT_MS, type Happening, type Plan, type Story } from './story.js'

const EVENTS = 'express-service-auth:idempotency'
/** Within this time after all faults have ended, everybody has an answer. */
const LAST_DEADLINE_MS = 60_000
const LAST_PLAN: Plan = { beforeMs: 0, afterMs: 0, ending: 'answers' }
const LAST = {
  plan: LAST_PLAN,
  reusesToken: false,
  asksAgain: false,
  settles: undefined,
  deadlineMs: LAST_DEADLINE_MS,
  attemptTimeoutMs: 10_000,
  maxAttempts: 10,
}

/** Tells a story from its beginning to the last answer. */
export class World {
  readonly stage: Stage
  readonly receivers: readonly Receiver[]
  readonly operator: Operator
  readonly #callers: Callers
  readonly #nature

  constructor(story: Story, esa: Package) {
    const stage = new Stage(story, esa)
    this.stage = stage
    this.#nature = stage.simulation.machine('nature')
    this.operator = new Operator(stage)
    this.receivers = story.receivers.map(
      (clock, index) => new Receiver(stage, `receiver ${index + 1}`, clock),
    )
    this.#callers = new Callers(stage, this.receivers, this.operator)
  }

  async tell(): Promise<void> {
    subscribe(EVENTS, this.#onEvent)
    try {
      await this.#tell()
    } finally {
      unsubscribe(EVENTS, this.#onEvent)
    }
  }

  /** What a receiver publishes of a run is what its operator knows. */
  readonly #onEvent = (message: unknown): void => {
    const { reason, fence, record } = message as { reason: string; fence?: number; record: string }
    if (fence !== undefined && reason !== 'reserved') this.stage.reported(record, fence, reason)
  }

  async #tell(): Promise<void> {
    const { story, simulation, redis, history } = this.stage
    for (const receiver of this.receivers) receiver.start()
    for (const call of story.calls) this.#later(call.at, () => this.#callers.call(call))
    const atCommand = story.happenings.filter(({ unit }) => unit === 'commands')
    redis.onCommand = (count) => {
      for (const happening of atCommand) if (happening.at === count) this.#happen(happening)
    }
    for (const happening of story.happenings) {
      if (happening.unit === 'ms') this.#later(happening.at, () => this.#happen(happening))
    }
    let isCalm = false
    this.#later(CALM_AT_MS, () => {
      isCalm = true
    })
    await simulation.run(() => isCalm)
    this.#calm()
    await simulation.run(() => this.#callers.open === 0)
    this.#retryToTheEnd()
    await simulation.run(() => this.#callers.open === 0)
    this.#tryOldTokens()
    await simulation.run(() => this.#callers.open === 0)
    await simulation.run(() =>
      history.runs.every((run) => run.endedAt !== undefined || run.isDead()),
    )
    for (const receiver of this.receivers) receiver.stop()
    this.operator.close()
    let isOver = false
    this.#later(5000, () => {
      isOver = true
    })
    await simulation.run(() => isOver)
  }

  /** What is left when everybody has closed. */
  get left(): Leftovers {
    const { simulation, network, redis } = this.stage
    const living = simulation.machines.filter(({ isAlive, timers }) => isAlive && timers.size > 0)
    // The server's end of a silent connection never learns that it is over.
    const open = [...network.connections].filter(({ ends }) => ends.client?.machine.isAlive)
    const endlessKeys = [...redis.keys.values]
      .filter(
        ([key, { endsAt }]) => key.startsWith('esa:k:') && endsAt === Number.POSITIVE_INFINITY,
      )
      .map(([key]) => key)
    return { timers: living.map(({ name }) => name), connections: open.length, endlessKeys }
  }

  #later(ms: number, work: () => void): void {
    this.stage.simulation.after(ms, this.#nature, work)
  }

  /** Faults end; what is dead starts again. */
  #calm(): void {
    const { redis, network, history, simulation } = this.stage
    redis.onCommand = () => {}
    network.calm()
    redis.calm()
    for (const disturbance of history.disturbances) {
      // Nobody notices such a link before it is used.
      if (disturbance.what === 'silence link to Redis') continue
      disturbance.until = Math.min(disturbance.until, simulation.now + SETTLE_MS)
    }
    for (const receiver of this.receivers) if (!receiver.isListening) receiver.start()
  }

  #happen(happening: Happening): void {
    const text = strike(this, happening)
    if (text !== undefined) this.stage.note('', text)
  }

  #retryToTheEnd(): void {
    const asked = new Map(
      this.stage.story.calls.map((call) => [`${call.service} ${call.key} ${call.body}`, call]),
    )
    for (const call of asked.values()) {
      const name = `caller ${call.caller + 1}`
      this.#callers.call({ ...call, ...LAST }, true, name)
    }
  }

  /** Whoever has kept a token from the beginning tries it once more. */
  #tryOldTokens(): void {
    const call = this.stage.story.calls[0]
    if (call !== undefined)
      this.#callers.call({ ...call, ...LAST, maxAttempts: 1, reusesToken: true })
  }
}
