import type { MigrationReport } from '../../../src/migration/run/report.js'
import type { Source } from '../../../src/migration/source/source.js'
import { people, person, sourceOf } from '../../migration/run/support/people.js'
import type { SimulatedCore } from '../../migration/run/support/simulated-core.js'
import { Simulation } from '../clock.js'
import { History } from '../history.js'
import { type Package, type Surroundings, surround } from '../load.js'
import type { Verdict } from '../oracle.js'
import { judgeMigration } from './oracle.js'
import {
  isAddressCorrected,
  isObstructed,
  type MigrationStory,
  nameOf,
  SETTLE_SECONDS,
} from './story.js'

type Migration = Awaited<ReturnType<Package['openMigrationWith']>>
type User = Parameters<SimulatedCore['importNow']>[0]

/** A person who reconciles again has waited. */
const BETWEEN_LOOKS_MS = 10_000
/** Enough for calls that land late one after another, and for kills. */
const MAX_PROCESSES = 150
/** How long the core and the disk take, and how long after its last step a process dies, at most. */
const STEP_MS = 8

/** Processes follow one another until the migration is complete; a person corrects and reconciles. */
export class MigrationWorld {
  readonly history = new History()
  readonly simulation: Simulation
  readonly core: SimulatedCore
  readonly reports: MigrationReport[] = []
  /** What was wrong while it happened. */
  readonly faults: string[] = []
  readonly #story: MigrationStory
  readonly #package: Package
  readonly #nature
  readonly #journal: string[] = []
  readonly #files: Source[] = []
  readonly #kills: number[]
  /** Of whoever was in a call: an account that was there by then must be seen before the next. */
  readonly #mustBeSeen = new Map<string, number>()
  /** What is still to happen, once. */
  #awaited = 0
  #steps = 0
  #processBegan = 0

  constructor(story: MigrationStory, esa: Package) {
    this.#story = story
    this.#package = esa
    this.simulation = new Simulation(story.seed)
    surround({ simulation: this.simulation } as Surroundings)
    this.#nature = this.simulation.machine('nature')
    this.#kills = [...story.kills]
    const fates = [...story.fates]
    const blames = [...story.blames]
    this.core = esa.simulatedCore({
      time: {
        pass: () => this.#pause(),
        at: (ms, happens) => this.#at(ms, happens),
        now: () => Math.floor(this.#nature.wallMs()),
        elapsedMs: () => this.simulation.now,
      },
      fate: () => fates.shift() ?? 'done',
      blame: () => blames.shift() ?? 'culprit',
      poison: new Set(story.poison.map(nameOf)),
      onCall: () => this.#step(),
    })
    this.#begin()
  }

  #begin(): void {
    const { users, conflicts, conflictsAreLate, taken, hook, jobEveryMs, jobUsers } = this.#story
    const records = people(users) as User[]
    const otherThan = (user: number, name: string): User =>
      ({ ...person(nameOf(user)), externalUserId: `${name}-${user}` }) as User
    for (const user of conflicts) {
      const other = otherThan(user, 'other')
      if (conflictsAreLate) this.core.importLater(other)
      else this.core.importNow(other)
    }
    for (const { afterMs, user } of taken)
      this.#at(afterMs, () => this.core.importNow(otherThan(user, 'taker')))
    for (const { afterMs, user } of hook)
      this.#at(afterMs, () => this.core.importNow(records[user] as User))
    const job = (): void => {
      this.core.runJob(jobUsers)
      this.simulation.after(jobEveryMs, this.#nature, job)
    }
    this.simulation.after(jobEveryMs, this.#nature, job)
  }

  #note(party: string, text: string): void {
    this.history.lines.push({ at: this.simulation.now, party, text })
  }

  #at(ms: number, happens: () => void): void {
    this.#awaited += 1
    this.simulation.after(ms, this.#nature, () => {
      this.#awaited -= 1
      happens()
    })
  }

  /** What the running process waits for. */
  #pause(ms = this.simulation.random.next() * STEP_MS): Promise<void> {
    const { current } = this.simulation
    return new Promise((resolve) => current?.after(ms, resolve))
  }

  /** A process dies soon after so many steps. */
  #step(): void {
    this.#steps += 1
    if (this.#steps !== this.#kills[0]) return
    const { current, random } = this.simulation
    this.simulation.after(random.next() * STEP_MS, this.#nature, () => current?.kill())
  }

  async tell(): Promise<void> {
    const { hookIsFirst, users, conflicts } = this.#story
    let corrected = 0
    for (let process = 1; process <= MAX_PROCESSES; process += 1) {
      // What lands after the last look at the core is seen by the next.
      const isOver = this.#awaited === 0
      const last = this.reports.at(-1)
      if (isLookedAt(last)) await this.simulation.pass(BETWEEN_LOOKS_MS, this.#nature)
      if (hookIsFirst && last?.state === 'to_correct') {
        const isFixed = (user: number): boolean =>
          user < users && isAddressCorrected(this.#story, user)
        for (const user of conflicts.filter(isFixed)) this.core.importNow(fixed(user) as User)
      }
      const isCorrected = this.#applied().length > corrected
      const report = await this.#process(`process ${process}`, last, isCorrected)
      if (report === undefined) continue
      this.reports.push(report)
      corrected = this.#applied().length
      if (report.state === 'complete' && isOver) return
    }
    throw new Error('the migration does not come to an end')
  }

  judge(): Verdict {
    return { broken: judgeMigration(this.#story, this), explained: [] }
  }

  /** `undefined` if it was killed. */
  async #process(
    name: string,
    last: MigrationReport | undefined,
    isCorrected: boolean,
  ): Promise<MigrationReport | undefined> {
    const { simulation } = this
    const machine = simulation.machine(name)
    this.#processBegan = simulation.now
    this.#steps = 0
    let ended: { readonly report: MigrationReport } | { readonly error: unknown } | undefined
    simulation.after(0, machine, () => {
      this.#run(last, isCorrected).then(
        (report) => {
          ended = { report }
        },
        (error: unknown) => {
          ended = { error }
        },
      )
    })
    await simulation.run(() => ended !== undefined || !machine.isAlive)
    if (ended === undefined) this.#kills.shift()
    const timers = machine.timers.size
    machine.kill()
    if (ended !== undefined && 'error' in ended) throw ended.error
    const report = ended?.report
    this.#note(name, report === undefined ? 'is killed' : `reports ${report.state}`)
    if (report !== undefined && timers > 0) this.faults.push(`left: ${timers} timers of ${name}`)
    return report
  }

  async #run(last: MigrationReport | undefined, isCorrected: boolean): Promise<MigrationReport> {
    const migration = await this.#open()
    if (last?.state === 'to_correct' && !isCorrected)
      return migration.correct(await this.#corrections(migration))
    if (last?.state === 'stalled') {
      // A process that was killed in it may have done it all.
      return migration.unblock().catch((error: Error) => {
        if (error.name === 'MigrationError') return migration.run()
        throw error
      })
    }
    return isLookedAt(last) ? migration.reconcile() : migration.run()
  }

  #open(): Promise<Migration> {
    const machine = this.simulation.current
    if (machine === undefined) throw new Error('no process runs')
    const journal = {
      read: async function* (this: { lines: string[] }) {
        yield* [...this.lines]
      },
      lines: this.#journal,
      append: async (lines: readonly string[]) => {
        this.#step()
        await this.#pause()
        this.#journal.push(...lines)
        for (const line of lines) this.#note(machine.name, line.slice(0, 100))
        await this.#pause()
      },
      close: async () => {},
    }
    return this.#package.openMigrationWith(
      {
        core: { ...this.core, stageUsers: this.#stageUsers },
        journal,
        source: sourceOf(people(this.#story.users)),
        batchUsers: this.#story.batchUsers,
        settleSeconds: SETTLE_SECONDS,
        pollSeconds: 2,
        stallMinutes: 3,
        lookUps: 2,
        corrections: this.#applied(),
      },
      {
        now: () => Math.floor(machine.wallMs()),
        elapsedMs: () => machine.monotonicMs(),
        sleep: async (ms, signal) => {
          signal.throwIfAborted()
          await this.#pause(ms)
        },
      },
    )
  }

  /** Finds who is sent again although a look-up before must have shown the account. */
  readonly #stageUsers: SimulatedCore['stageUsers'] = async (users, options) => {
    const names = users.map(({ externalUserId = '' }) => externalUserId)
    for (const name of names) {
      const until = this.#mustBeSeen.get(name)
      const madeAt = this.core.accounts.get(name)?.madeAt
      if (until === undefined || madeAt === undefined) continue
      if (madeAt < until || madeAt <= this.#processBegan) this.faults.push(`resent: ${name}`)
    }
    const mustSee = (until: number): void => {
      for (const name of names) this.#mustBeSeen.set(name, until)
    }
    this.#note('core', `is sent ${names.join(', ')}`)
    try {
      const staging = await this.core.stageUsers(users, options)
      mustSee(0)
      return staging
    } catch (error) {
      if ((error as { outcome?: string }).outcome === 'unknown')
        mustSee(this.simulation.now + SETTLE_SECONDS * 1000)
      throw error
    }
  }

  /** The files of corrections that the journal knows. */
  #applied(): readonly Source[] {
    const isCorrection = (line: string): boolean => line.startsWith('{"type":"corrected"')
    return this.#files.slice(0, this.#journal.filter(isCorrection).length)
  }

  /** Whom the journal knows as left out. */
  get leftOut(): ReadonlySet<string> {
    const numbers = this.#journal.flatMap((line): [number][] => {
      const entry = JSON.parse(line)
      return entry.type === 'corrected' ? entry.leftOut : []
    })
    return new Set(numbers.map(([number]) => nameOf(number)))
  }

  /** A person writes a file of corrections for those who have failed. */
  async #corrections(migration: Migration): Promise<Source> {
    const lines: object[] = []
    for await (const { externalUserId: id, state } of migration.identities()) {
      if (state !== 'failed' && state !== 'invalid') continue
      const user = Number(id.slice('user-'.length))
      if (!isObstructed(this.#story, user)) throw new Error(`${id} has failed, and is innocent`)
      lines.push(
        isAddressCorrected(this.#story, user)
          ? { replaces: id, user: fixed(user) }
          : { leaveOut: id, reason: 'has an account of old' },
      )
    }
    this.#files.length = this.#applied().length
    const file = sourceOf(lines, `corrections-${this.#files.length}`)
    this.#files.push(file)
    return file
  }
}

const isLookedAt = (last: MigrationReport | undefined): boolean =>
  last?.state === 'complete' || last?.state === 'to_reconcile'

function fixed(user: number): object {
  const [method] = person(nameOf(user)).loginMethods
  return person(nameOf(user), {
    loginMethods: [{ ...method, email: `${nameOf(user)}@elsewhere.example` }],
  })
}
