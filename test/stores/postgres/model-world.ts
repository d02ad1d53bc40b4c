import type {
  CoupledEnding,
  CoupledOutcome,
  CoupledRun,
} from '../../../src/idempotency/coupled/coupled-store.js'
import { consumeWithin } from '../../../src/stores/postgres/postgres-store.js'
import { createRun } from '../../../src/stores/postgres/run/create-run.js'
import { createLiveRuns, type LiveRuns } from '../../../src/stores/postgres/run/live-runs.js'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'
import { recordIds, tokenIds } from '../../../src/stores/postgres/sql/record-ids.js'
import type { StoreContext } from '../../../src/stores/postgres/store-context.js'
import { ModelDatabase, ModelError } from './model-database.js'
import { effectOf, ModelLedger, resultOf, SEEDED_FENCE, type Start } from './model-ledger.js'
import type { Mutant } from './model-mutants.js'
import { type Connection, ModelClient, modelRunner } from './model-runner.js'
import { Schedule } from './model-schedule.js'
import { MODEL_STATEMENTS } from './model-statements.js'
import type { Call, Fault, Plan, Story } from './model-story.js'

const SCHEMA = 'service_auth'
const LIMITS = { acquireMs: 1000, transactionMs: 30_000, resolveMs: 3000 }
const DOWN_MS = 500
const MAX_STEPS = 5000
const MAX_LAST_TRIES = 8
const PROCESSES = 3

const LAST_PLAN: Plan = { parts: 1, ending: 'commit', isLate: false, ticks: 0, usesToken: false }

/** One process of the receiver, until it dies. */
interface Receiver {
  readonly client: ModelClient
  readonly place: StoreContext<Connection>
  readonly live: LiveRuns<Connection>
  readonly run: ReturnType<typeof createRun>
  /** What its callers hear when it dies. */
  readonly cutOff: Set<() => void>
}

/** Tells a story, and what it breaks. */
export async function tell(story: Story, mutant: Mutant): Promise<readonly string[]> {
  const schedule = new Schedule(story.choices)
  const database = new ModelDatabase(schedule, mutant.operations, story.splitReleases)
  const world = new World(story, { schedule, database, mutant })
  await world.tell()
  return world.ledger.broken
}

interface Parts {
  readonly schedule: Schedule
  readonly database: ModelDatabase
  readonly mutant: Mutant
}

class World {
  readonly ledger: ModelLedger
  readonly #story: Story
  readonly #schedule: Schedule
  readonly #database: ModelDatabase
  readonly #mutant: Mutant
  readonly #receivers: Receiver[]

  constructor(story: Story, { schedule, database, mutant }: Parts) {
    this.#story = story
    this.#schedule = schedule
    this.#database = database
    this.#mutant = mutant
    this.ledger = new ModelLedger(database)
    this.#receivers = Array.from({ length: PROCESSES }, () => this.#open())
    for (const key of story.expired) this.#seed(key)
  }

  async tell(): Promise<void> {
    const { calls, faults } = this.#story
    for (const call of calls) this.#schedule.later('caller', () => void this.#callUntilFinal(call))
    const due = new Set(faults)
    do {
      for (const fault of due) if (this.#strike(fault)) due.delete(fault)
    } while ((await this.#schedule.step()) && this.#schedule.happened.length < MAX_STEPS)
    this.#schedule.goInOrder()
    this.#database.isUp = true
    for (const call of calls) await this.#lastRetry(call)
    if (this.#schedule.happened.length >= MAX_STEPS) this.ledger.broken.push('it never ends')
    this.ledger.settled()
  }

  #seed(key: string): void {
    const { id, fingerprint } = recordIds(key, 'one', SCHEMA)
    const result = resultOf({ number: 0, body: 'one' })
    const state = { usedToken: false, isExpired: true, writtenBy: SEEDED_FENCE }
    this.#database.rows.set(`record ${id}`, { table: 'record', id, fingerprint, result, ...state })
    this.ledger.sent({ key, body: 'one', process: 0, plans: [] })
  }

  #open(): Receiver {
    const client = new ModelClient(this.#database)
    const place: StoreContext<Connection> = {
      runner: this.#observed(modelRunner(client, this.#story.hasBatches)),
      schema: SCHEMA,
      statements: MODEL_STATEMENTS,
      limits: LIMITS,
    }
    const live = this.#mutant.live(createLiveRuns<Connection>())
    return { client, place, live, run: this.#mutant.run(createRun(place, live)), cutOff: new Set() }
  }

  /** Who cannot reach the database cannot use a token up. */
  #observed(runner: TransactionRunner<Connection>): TransactionRunner<Connection> {
    return {
      ...runner,
      query: async (tx, text, values, limits) => {
        try {
          return await runner.query(tx, text, values, limits)
        } catch (error) {
          if (text === 'use_up') this.ledger.excusedTokens.add(String(values[0]))
          throw error
        }
      },
    }
  }

  async #drain(): Promise<void> {
    while ((await this.#schedule.step()) && this.#schedule.happened.length < MAX_STEPS);
  }

  async #callUntilFinal(call: Call): Promise<void> {
    for (const [index, plan] of call.plans.entries()) {
      const outcome = await this.#call(call, plan, call.process + index)
      if (outcome !== undefined && !mayRetry(outcome)) return
    }
  }

  async #lastRetry(call: Call): Promise<void> {
    let last: CoupledOutcome['outcome'] = 'rolled_back'
    for (let tries = 0; tries < MAX_LAST_TRIES; tries++) {
      let outcome: CoupledOutcome | undefined
      void this.#call(call, LAST_PLAN, call.process).then((answer) => {
        outcome = answer
      })
      await this.#drain()
      last = outcome?.outcome ?? 'rolled_back'
      if (ModelLedger.isFinal(last)) break
    }
    this.ledger.final(call, last)
  }

  /** `undefined` where the caller is cut off. */
  #call(call: Call, plan: Plan, process: number): Promise<CoupledOutcome | undefined> {
    const receiver = this.#receivers[process % PROCESSES] as Receiver
    this.ledger.sent(call)
    return new Promise((resolve) => {
      const cut = (): void => resolve(undefined)
      receiver.cutOff.add(cut)
      const requester = {}
      let start: Start | undefined
      const request = { recordId: call.key, fingerprint: call.body, retentionMs: 1000, requester }
      const work = (run: CoupledRun): Promise<CoupledEnding> => {
        start = this.#start({ call, plan, fence: run.fence, home: receiver })
        return handle({ receiver, requester, run, start })
      }
      void receiver.run(request, work).then((outcome) => {
        receiver.cutOff.delete(cut)
        if (!receiver.client.isAlive) return
        this.ledger.answered({ call, outcome, start })
        resolve(outcome)
      })
    })
  }

  #start(begun: Pick<Start, 'call' | 'plan' | 'fence' | 'home'>): Start {
    const number = this.ledger.starts.length + 1
    const start: Start = { ...begun, number, written: [], token: undefined }
    this.ledger.started(start)
    return start
  }

  /** `false` while its time has not come. */
  #strike(fault: Fault): boolean {
    if (fault.at > this.#schedule.happened.length) return false
    const connections = this.#receivers.flatMap(({ client }) => [...client.connections])
    const isCommitting = connections.filter((connection) => connection.isCommitting)
    if (fault.type === 'COMMIT is cut off' && isCommitting.length === 0) return false
    const inTransaction = connections.filter(({ session }) => session.transaction !== undefined)
    const preferred = fault.type === 'COMMIT is cut off' ? isCommitting : inTransaction
    const among = preferred.length > 0 ? preferred : connections
    this.#happens(fault, among[fault.which % Math.max(1, among.length)])
    return true
  }

  #happens({ type, which, dropsRequests }: Fault, connection: Connection | undefined): void {
    switch (type) {
      case 'process dies':
        this.#kill(which % PROCESSES, dropsRequests)
        break
      case 'connection is cut':
      case 'COMMIT is cut off':
        connection?.cut({ dropsRequests })
        break
      case 'connection falls silent':
        if (connection) connection.isSilent = true
        break
      case 'backend is ended':
        connection?.session.die(new ModelError('57P01'))
        break
      case 'database restarts':
        this.#restart()
        break
      case 'locks are lost':
        this.ledger.hasLostLocks = true
        connection?.session.freeLocks()
        break
      case 'sweep':
        this.#sweep()
        break
    }
  }

  #sweep(): void {
    for (const [name, row] of this.#database.rows) {
      if (row.isExpired === true) this.#database.rows.delete(name)
    }
  }

  #kill(process: number, dropsRequests: boolean): void {
    const receiver = this.#receivers[process] as Receiver
    receiver.client.kill({ dropsRequests })
    for (const { home, token } of this.ledger.starts) {
      if (home === receiver && token !== undefined) this.ledger.excusedTokens.add(token)
    }
    this.#receivers[process] = this.#open()
    for (const cut of receiver.cutOff) cut()
  }

  #restart(): void {
    this.#database.isUp = false
    for (const session of this.#database.sessions) session.die(new Error('ECONNRESET'))
    setTimeout(() => {
      this.#database.isUp = true
    }, DOWN_MS)
  }
}

const mayRetry = ({ outcome }: CoupledOutcome): boolean =>
  ['running', 'undone', 'rolled_back', 'commit_refused'].includes(outcome)

interface Handling {
  readonly receiver: Receiver
  readonly requester: object
  readonly run: CoupledRun
  readonly start: Start
}

/** The handler, as its plan says. Like Express, it makes an answer of whatever it throws. */
async function handle(handling: Handling): Promise<CoupledEnding> {
  const { receiver, requester, run, start } = handling
  const tx = receiver.live.of(requester, 'the model').transaction()
  try {
    if (start.plan.usesToken && !(await useToken(handling))) {
      run.answered()
      return { type: 'roll_back' }
    }
    return await write(handling, tx)
  } catch {
    run.answered()
    return { type: 'roll_back' }
  }
}

async function useToken({ receiver, requester, start }: Handling): Promise<boolean> {
  const run = receiver.live.of(requester, 'the model')
  const token = `token of ${start.call.key}`
  const isFirst = await consumeWithin(receiver.place, run, { id: token, ttlMs: 1000 })
  if (isFirst) start.token = tokenIds(token, SCHEMA).id
  return isFirst
}

async function write({ receiver, requester, run, start }: Handling, tx: Connection) {
  const { plan, call, number } = start
  const late = async (): Promise<void> => {
    for (let tick = 0; tick < plan.ticks; tick++) await Promise.resolve()
    await tx.query({ text: 'effect', values: [effectOf(number, call.key, 'late')] })
  }
  for (let part = 0; part < plan.parts; part++) {
    const id = effectOf(number, call.key, String(part))
    await tx.query({ text: 'effect', values: [id] })
    start.written.push(id)
  }
  if (plan.ending === 'swallow an error') {
    await tx.query({ text: 'fail', values: [] }).catch(() => {})
  }
  if (plan.ending === 'refuse, keep writes') {
    receiver.live.of(requester, 'the model').keepsWrites = true
  }
  if (plan.ending === 'hang') {
    await new Promise((resolve) => run.signal.addEventListener('abort', resolve))
    if (plan.isLate) await late()
  }
  run.answered()
  if (plan.isLate) void late().catch(() => {})
  return endingOf(start)
}

function endingOf({ plan, number, call }: Start): CoupledEnding {
  const result = resultOf({ number, body: call.body })
  switch (plan.ending) {
    case 'commit, too large to keep':
      return { type: 'commit', result: undefined }
    case 'refuse':
    case 'refuse, keep writes':
      return { type: 'refuse', result }
    case 'roll back':
    case 'hang':
      return { type: 'roll_back' }
    case 'commit':
    case 'swallow an error':
      return { type: 'commit', result }
  }
}
