import type { Denial, SettlementRecord } from './history.js'
import { ISSUER } from './issuer.js'
import type { Stage } from './stage.js'

const TIMEOUT_MS = 5000
const YEAR_SECONDS = 31_536_000

/** Who settles keys by hand, and denies callers. */
export interface Operator {
  settle(recordName: string, as: 'finished' | 'freed'): void
  deny(service: string, what: 'deny' | 'allow'): void
  close(): void
}

export function createOperator(stage: Stage): Operator {
  const { history, simulation, storedAs, story, package: esa } = stage
  const machine = simulation.machine('operator')
  machine.distanceMs = story.operatorDistanceMs
  const connect = () => {
    const redis = new esa.Redis({ lazyConnect: true })
    const store = esa.redisStore(redis, { timeoutMs: TIMEOUT_MS })
    return { redis, store, denylist: esa.redisDenylist(redis) }
  }
  let tools: ReturnType<typeof connect> | undefined
  const connected = (): ReturnType<typeof connect> => {
    tools ??= connect()
    return tools
  }
  const note = (text: string): void => stage.note('operator', text)
  const onMachine = (work: () => unknown): void =>
    void simulation.after(0, machine, () => void work())

  /** `undefined` if nobody knows whether it was settled. */
  async function settled(settlement: SettlementRecord): Promise<boolean | undefined> {
    const { recordName, answer } = settlement
    const record = storedAs.get(recordName) ?? ''
    const { store } = connected()
    try {
      const view = await store.inspect(record)
      if (view === undefined) return false
      settlement.foundFence = view.fence
      if (answer === undefined) return await store.resolve(record, view.fence, { type: 'freed' })
      const result = { status: answer.status, headers: [], body: Buffer.from(answer.body) }
      return await store.resolve(record, view.fence, {
        type: 'finished',
        result: esa.encodeResult(result),
      })
    } catch {
      return undefined
    }
  }

  return {
    settle(recordName, as) {
      const answer = { status: 200, body: `settled ${history.settlements.length + 1}` }
      const asked = { recordName, as, sentAt: simulation.now }
      const settlement: SettlementRecord = as === 'finished' ? { ...asked, answer } : asked
      history.settlements.push(settlement)
      onMachine(async () => {
        const isDone = await settled(settlement)
        if (isDone !== undefined) settlement.isDone = isDone
        settlement.doneAt = simulation.now
        note(`settles ${recordName} as ${as}: ${isDone ?? 'nobody knows'}`)
      })
    },
    deny(service, what) {
      const denial: Denial = { service, what, sentAt: simulation.now }
      history.denials.push(denial)
      const target = { issuer: ISSUER, kind: 'caller', value: service } as const
      onMachine(async () => {
        const { denylist } = connected()
        const at = Math.floor(machine.wallMs() / 1000)
        const entry = { ...target, reason: 'r', by: 'b', at, until: at + YEAR_SECONDS }
        const limit = { timeoutMs: TIMEOUT_MS }
        try {
          await (what === 'allow' ? denylist.allow(target, limit) : denylist.deny(entry, limit))
          denial.confirmedAt = simulation.now
        } catch {
          // It may apply all the same.
        }
        note(`${what} ${service}: ${denial.confirmedAt === undefined ? 'not ' : ''}confirmed`)
      })
    },
    close: () =>
      onMachine(() => {
        tools?.store.close()
        tools?.denylist.close()
        tools?.redis.disconnect()
      }),
  }
}
