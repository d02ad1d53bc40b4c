import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Callers } from './callers.js'
import type { Simulation } from './clock.js'
import { strike } from './happenings.js'
import type { History } from './history.js'
import type { Package } from './load.js'
import type { Connection } from './network.js'
import { createOperator, type Operator } from './operator.js'
import type { Leftovers, Verdict } from './oracle.js'
import { CoupledOracle } from './postgres/oracle.js'
import { CoupledReceiver } from './postgres/receiver.js'
import { Receiver } from './receiver.js'
import { LeasedOracle } from './redis/oracle.js'
import { Stage } from './stage.js'
import { CALM_AT_MS, type Happening, type Plan, SETTLE_MS, type Story } from './story.js'

const EVENTS = 'express-service-auth:idempotency'
/** What it publishes besides the end of a run. */
const NO_END = new Set(['reserved', 'transaction_unused', 'transaction_used_late'])
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

/** What may last longer than the faults. */
const LASTING = new Set(['silence link to Redis', 'stop issuer'])
/** Longer than a sweep waits for the answer to one statement. */
const SWEEP_MS = 65_000
/** Longer than a receiver keeps a key set. */
const KEPT_MS = 13_000
/** Less than a key set lasts that is refreshed in time. */
const REFRESHED_MS = 4000
/** Longer than the client of an operator waits for a reply before it reconnects. */
const CLOSED_MS = 10_000
const NOW = { at: 0, unit: 'ms', which: 0, ms: 0, drops: [] } as const

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
    this.#nature = stage.simulation.server('nature')
    this.operator = createOperator(stage)
    const ReceiverOfStory = story.coupled === undefined ? Receiver : CoupledReceiver
    this.receivers = story.receivers.map(
      (clock, index) => new ReceiverOfStory(stage, `receiver ${index + 1}`, clock),
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
    if (fence !== undefined && !NO_END.has(reason)) this.stage.reported(record, fence, reason)
  }

  async #tell(): Promise<void> {
    const { story, simulation, network, server, history } = this.stage
    for (const receiver of this.receivers) receiver.start()
    for (const call of story.calls) this.#later(call.at, () => this.#callers.call(call))
    const due = (of: Happening['unit'], count: number): readonly Happening[] =>
      story.happenings.filter(({ unit, at }) => unit === of && at === count)
    server.onCommand = (count) => {
      for (const happening of due('commands', count)) this.#happen(happening)
    }
    let messages = 0
    network.onMessage = (machine) => {
      const sender = this.receivers.find((receiver) => receiver.machine === machine)
      if (sender === undefined) return
      messages += 1
      for (const happening of due('messages', messages)) this.#happen(happening, sender)
    }
    for (const happening of story.happenings) {
      if (happening.unit === 'ms') this.#later(happening.at, () => this.#happen(happening))
    }
    await this.#pass(CALM_AT_MS)
    this.#calm()
    await this.#answered()
    if (story.restartsAtEnd) for (const receiver of this.receivers) this.#restart(receiver)
    this.#retryToTheEnd()
    await this.#answered()
    await this.#endKeys()
    this.#tryOldTokens()
    await this.#answered()
    await simulation.run(() =>
      history.runs.every((run) => run.endedAt !== undefined || run.isDead()),
    )
    for (const receiver of this.receivers) receiver.retire()
    this.operator.close()
    await this.#pass(story.coupled === undefined ? CLOSED_MS : SWEEP_MS)
  }

  async #pass(ms: number): Promise<void> {
    await this.stage.simulation.pass(ms, this.#nature)
  }

  async #answered(): Promise<void> {
    await this.stage.simulation.run(() => this.#callers.open === 0)
  }

  #restart(receiver: Receiver): void {
    this.stage.disturb('kill receiver', receiver.name, 0)
    receiver.kill()
    this.stage.network.ended(receiver.machine)
    receiver.start()
    this.stage.note('', `${receiver.name} is killed and starts again`)
  }

  /** What happens to the keys, and what must still be accepted. */
  async #endKeys(): Promise<void> {
    const { story, issuer, network, simulation } = this.stage
    const [call] = story.calls
    if (story.keysAtEnd === undefined || call === undefined) return
    if (story.keysAtEnd === 'issuer down') {
      for (const receiver of this.receivers)
        this.#callers.call({ ...call, ...LAST }, true, receiver)
      await this.#answered()
      await this.#pass(KEPT_MS)
      issuer.isListening = false
      await this.#pass(REFRESHED_MS)
      const once = { ...call, ...LAST, maxAttempts: 1 }
      for (const receiver of this.receivers) {
        this.#callers.call(once, true, receiver)
        await this.#answered()
      }
      this.stage.disturb('stop issuer', '', Number.POSITIVE_INFINITY)
      return
    }
    this.#happen({ what: 'add key', ...NOW })
    while (issuer.published.length > 1) this.#happen({ what: 'remove key', ...NOW })
    if (story.keysAtEnd === 'removed, issuer down') {
      this.stage.disturb('stop issuer', '', Number.POSITIVE_INFINITY)
      issuer.isListening = false
    }
    if (story.keysAtEnd === 'removed, receivers frozen') {
      // A fetch under way would time out, which is a reason to use a set for longer.
      const isFetching = ({ ends }: Connection): boolean =>
        this.receivers.some(({ machine }) => machine === ends.client?.machine) &&
        (ends.server === undefined || ends.server.machine === issuer.machine)
      await simulation.run(() => ![...network.connections].some(isFetching))
      for (const { name, machine } of this.receivers) {
        this.stage.disturb('freeze receiver', name, KEPT_MS)
        machine.freeze(KEPT_MS)
      }
    }
    await this.#pass(KEPT_MS - 5)
  }

  get history(): History {
    return this.stage.history
  }

  get simulation(): Simulation {
    return this.stage.simulation
  }

  judge(): Verdict {
    const { story, history, storedAs } = this.stage
    const OracleOfStore = story.coupled === undefined ? LeasedOracle : CoupledOracle
    return new OracleOfStore(story, history, storedAs).judge(this.#left)
  }

  /** What is left when everybody has closed. */
  get #left(): Leftovers {
    const { simulation, network, redis } = this.stage
    const living = simulation.machines.filter(({ isAlive, timers }) => isAlive && timers.size > 0)
    // The server's end of a silent connection never learns that it is over.
    const open = [...network.connections].filter(({ ends }) => ends.client?.machine.isAlive)
    const endlessKeys = [...redis.keys.values]
      .filter(
        ([key, { endsAt }]) => key.startsWith('esa:k:') && endsAt === Number.POSITIVE_INFINITY,
      )
      .map(([key]) => key)
    const transactions = this.stage.postgres?.endlessTransactions ?? 0
    return {
      transactions,
      timers: living.map(({ name }) => name),
      connections: open.length,
      endlessKeys,
    }
  }

  #later(ms: number, work: () => void): void {
    this.stage.simulation.after(ms, this.#nature, work)
  }

  /** Faults end; what is dead starts again. */
  #calm(): void {
    const { server, network, history, simulation } = this.stage
    server.onCommand = () => {}
    network.onMessage = () => {}
    network.calm()
    server.calm()
    for (const disturbance of history.disturbances) {
      // Nobody notices such a link before it is used, and receivers try again later than the issuer is back.
      if (LASTING.has(disturbance.what)) continue
      disturbance.until = Math.min(disturbance.until, simulation.now + SETTLE_MS)
    }
    for (const receiver of this.receivers) if (!receiver.isListening) receiver.start()
  }

  #happen(happening: Happening, sender?: Receiver): void {
    const text = strike(this, happening, sender)
    if (text !== undefined) this.stage.note('', text)
  }

  #retryToTheEnd(): void {
    const asked = new Map(
      this.stage.story.calls.map((call) => [`${call.service} ${call.key} ${call.body}`, call]),
    )
    for (const call of asked.values())
      this.#callers.call({ ...call, ...LAST, reusesToken: call.reusesToken }, true)
  }

  /** Whoever has kept a token from the beginning tries it once more. */
  #tryOldTokens(): void {
    const call = this.stage.story.calls[0]
    if (call !== undefined)
      this.#callers.call({ ...call, ...LAST, maxAttempts: 1, reusesToken: true })
  }
}
