import { type Machine, Simulation } from './clock.js'
import { type Attempt, type Disturbance, History, type Run } from './history.js'
import { Issuer } from './issuer.js'
import { type Package, surround } from './load.js'
import { Network, type StoreServer } from './network.js'
import type { DatabaseStep } from './postgres/database.js'
import { PostgresServer } from './postgres/server.js'
import { recordOf } from './records.js'
import { type Access, RedisServer } from './redis/server.js'
import { SETTLE_MS, type Story } from './story.js'

/** The header that names an attempt, for the history. */
export const ATTEMPT = 'x-attempt'

/** Where a story takes place: its clock, its network, its servers, and the history of what happens. */
export class Stage {
  readonly history = new History()
  readonly simulation: Simulation
  readonly network: Network
  readonly redis: RedisServer
  /** In a coupled story. */
  readonly postgres: PostgresServer | undefined
  readonly issuer: Issuer
  readonly story: Story
  readonly package: Package
  /** The key of a record in Redis, by the name of the record. */
  readonly storedAs = new Map<string, string>()

  constructor(story: Story, esa: Package) {
    this.story = story
    this.package = esa
    this.simulation = new Simulation(story.seed)
    this.network = new Network(this.simulation, story.weather)
    this.redis = new RedisServer(this.simulation.server('Redis', story.redis.clock), story.redis)
    this.issuer = new Issuer(this.simulation.server('issuer'))
    this.redis.onAccess = (access) => this.#accessed(access)
    this.redis.onLoss = (what, keys) =>
      void this.history.losses.push({ at: this.simulation.now, what, keys })
    if (story.coupled !== undefined) {
      const machine = this.simulation.server('Postgres', story.redis.clock)
      this.postgres = new PostgresServer(machine, {
        migration: esa.migration(),
        ...story.coupled,
      })
      this.postgres.onStep = (step) => this.#stepped(step)
    }
    surround({ simulation: this.simulation, network: this.network, server: this.server })
  }

  /** What the store of the story talks to. */
  get server(): StoreServer {
    return this.postgres ?? this.redis
  }

  /** An effect in Postgres is there when its transaction has committed. */
  #stepped(step: DatabaseStep): void {
    this.history.databaseSteps.push(step)
    if (step.type !== 'commit') return
    const run = this.history.runs.find(({ fence }) => fence === step.transaction)
    if (run !== undefined && step.rows.some(({ table }) => table === 'effect')) this.effect(run)
  }

  #accessed(access: Access): void {
    const { key, now, by, sentAt, isFull } = access
    const [recordName] = [...this.storedAs].find(([, stored]) => key === `esa:k:${stored}`) ?? []
    if (recordName === undefined) return
    const before = recordOf(access.before, now)
    const isWrite = access.after !== access.before
    const after = isWrite ? recordOf(access.after, now) : before
    const at = this.simulation.now
    const step = { recordName, by, sentAt, at, before, after, isWrite, isFull }
    this.history.steps.push(step)
  }

  note(party: string, text: string): void {
    this.history.lines.push({ at: this.simulation.now, party, text })
  }

  disturb(what: string, who: string, ms: number): Disturbance {
    const from = this.simulation.now
    const disturbance = { what, who, from, ms, until: from + ms + SETTLE_MS }
    this.history.disturbances.push(disturbance)
    return disturbance
  }

  attemptOf(request: { readonly headers: Readonly<Record<string, unknown>> }): Attempt {
    return this.history.attempts[Number(request.headers[ATTEMPT])] as Attempt
  }

  begin(attempt: Attempt, by: { fence: number; receiver: string; machine: Machine }): Run {
    const { fence, receiver, machine } = by
    const { recordName, body } = attempt.call
    const number = this.history.runs.length + 1
    const run: Run = {
      number,
      attempt,
      recordName,
      body,
      receiver,
      fence,
      startedAt: this.simulation.now,
      isDead: () => !machine.isAlive,
    }
    this.history.runs.push(run)
    this.note(receiver, `begins run ${number} of ${recordName}, fence ${fence % 1e12}`)
    return run
  }

  effect(run: Run): void {
    run.effectAt = this.simulation.now
    this.note(run.receiver, `EFFECT of run ${run.number} on ${run.recordName}`)
  }

  ended(run: Run, ending: string): void {
    run.endedAt = this.simulation.now
    run.ending = ending
    this.note(run.receiver, `run ${run.number} ${ending}`)
  }

  /** What a receiver publishes of the end of a run. */
  reported(record: string, fence: number, reason: string): void {
    const run = this.history.runs.find(
      (each) => each.fence === fence && this.storedAs.get(each.recordName) === record,
    )
    if (run === undefined) return
    run.reported = reason
    run.reportedAt = this.simulation.now
    this.note(run.receiver, `run ${run.number} has ended: ${reason}`)
  }
}
