import type { Machine } from './clock.js'
import type { Denial, SettlementRecord } from './history.js'
import { ISSUER } from './issuer.js'
import type { Stage } from './stage.js'

const TIMEOUT_MS = 5000
const YEAR_SECONDS = 31_536_000

/** Who settles keys by hand, and denies callers. */
export class Operator {
  readonly #stage: Stage
  readonly #machine: Machine
  #open: ReturnType<Operator['connect']> | undefined

  constructor(stage: Stage) {
    this.#stage = stage
    this.#machine = stage.simulation.machine('operator')
    this.#machine.distanceMs = stage.story.operatorDistanceMs
  }

  connect() {
    const { package: esa } = this.#stage
    const redis = new esa.Redis({ lazyConnect: true })
    return {
      redis,
      store: esa.redisStore(redis, { timeoutMs: TIMEOUT_MS }),
      denylist: esa.redisDenylist(redis),
    }
  }

  #tools(): ReturnType<Operator['connect']> {
    this.#open ??= this.connect()
    return this.#open
  }

  close(): void {
    this.#do(() => {
      this.#open?.store.close()
      this.#open?.denylist.close()
      this.#open?.redis.disconnect()
    })
  }

  #do(work: () => unknown): void {
    this.#stage.simulation.after(0, this.#machine, () => void work())
  }

  settle(recordName: string, as: 'finished' | 'freed'): void {
    const { history, simulation, storedAs, package: esa } = this.#stage
    const answer = { status: 200, body: `settled ${history.settlements.length + 1}` }
    const settlement: SettlementRecord = {
      recordName,
      as,
      sentAt: simulation.now,
      ...(as === 'finished' && { answer }),
    }
    history.settlements.push(settlement)
    const result = esa.encodeResult({ status: 200, headers: [], body: Buffer.from(answer.body) })
    this.#do(async () => {
      const record = storedAs.get(recordName) ?? ''
      const { store } = this.#tools()
      try {
        const view = await store.inspect(record)
        if (view !== undefined) settlement.foundFence = view.fence
        settlement.isDone =
          view !== undefined &&
          (await store.resolve(
            record,
            view.fence,
            as === 'freed' ? { type: 'freed' } : { type: 'finished', result },
          ))
      } catch {
        // Nobody knows whether it was settled.
      }
      settlement.doneAt = simulation.now
      this.#stage.note(
        'operator',
        `settles ${recordName} as ${as}: ${settlement.isDone ?? 'nobody knows'}`,
      )
    })
  }

  deny(service: string, what: 'deny' | 'allow'): void {
    const { history, simulation } = this.#stage
    const denial: Denial = { service, what, sentAt: simulation.now }
    history.denials.push(denial)
    const target = { issuer: ISSUER, kind: 'caller', value: service } as const
    this.#do(async () => {
      const { denylist } = this.#tools()
      const at = Math.floor(this.#machine.wallMs() / 1000)
      try {
        if (what === 'allow') await denylist.allow(target, { timeoutMs: TIMEOUT_MS })
        else
          await denylist.deny(
            { ...target, reason: 'r', by: 'b', at, until: at + YEAR_SECONDS },
            { timeoutMs: TIMEOUT_MS },
          )
        denial.confirmedAt = simulation.now
      } catch {
        // It may apply all the same.
      }
      this.#stage.note(
        'operator',
        `${what} ${service}: ${denial.confirmedAt === undefined ? 'not confirmed' : 'confirmed'}`,
      )
    })
  }
}
