import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresProxy } from '../../support/postgres/postgres-proxy.js'
import { MOMENTS, type Moment } from '../../support/postgres/postgres-wire.js'
import { newKey } from '../../support/receiver/order-calls.js'
import { type Cell, cellsOf, VERSIONS } from './matrix.js'
import { expectOnce, retry, told } from './retries.js'
import { LIMITS, onLane, openStage, PATIENT, type Stage } from './stage.js'

/** When a connection that is silent breaks at last, as TCP sees to. */
const SILENT_MS = 2 * LIMITS.transactionMs

/** Statements of a run: its bounds and locks, the handler's write, the record, COMMIT. */
const FEWEST_STATEMENTS = 4

const OURS = ['503 about:blank', '409 request-in-progress']

const LOOK_MS = 50

/** More at once take longer to connect, on a busy machine, than the limits allow. */
const LANES_AT_ONCE = 3

/** A connection that has gone silent breaks after a while, as it does when somebody notices. */
function breakOnceSilent(proxy: PostgresProxy): NodeJS.Timeout {
  let silentMs = 0
  const looking = setInterval(() => {
    if (proxy.cuts.length > 0) silentMs += LOOK_MS
    if (silentMs < SILENT_MS) return
    clearInterval(looking)
    proxy.cut()
  }, LOOK_MS)
  return looking
}

describe.each(VERSIONS)('a connection that fails at a statement, Postgres %i', (version) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage(version)
  })
  afterAll(() => stage.close())

  /** How many statements a first request sends, connecting included. */
  const countStatements = (cell: Cell): Promise<number> =>
    onLane(stage, cell, async ({ proxy, receive }) => {
      const { port } = await receive()
      proxy.reset()
      await retry(port, newKey())
      return proxy.statements.length
    })

  /** What the caller of a first request is told whose connection fails at the n-th statement. */
  const cutAt = (cell: Cell, at: number, moment: Moment): Promise<void> =>
    onLane(stage, cell, async ({ proxy, receive }) => {
      const { port, errors, failures } = await receive()
      const key = newKey()
      proxy.reset()
      proxy.cutAt({ at, moment })
      const breaking = breakOnceSilent(proxy)
      const { before, final } = await retry(port, key)
      clearInterval(breaking)
      const [statement] = proxy.cuts
      await proxy.heal()
      // A 500 is Express's answer to an error of the handler, and of nothing else.
      const handlers = told(before).filter((answer) => answer === '500')
      expect(handlers.length, statement).toBeLessThanOrEqual(failures.length)
      for (const error of errors) expect(failures, statement).toContain(error)
      const ours = told(before).filter((answer) => answer !== '500')
      expect(OURS, statement).toEqual(expect.arrayContaining([...new Set(ours)]))
      await expectOnce(stage, port, { key, final })
    })

  describe.each(cellsOf(['directly']))('$title', (cell) => {
    it.concurrent.each(MOMENTS)('%s any statement: never a false success', async (moment) => {
      const count = await countStatements(cell)
      expect(count).toBeGreaterThanOrEqual(FEWEST_STATEMENTS)
      const lanes = Array.from({ length: count }, (_none, index) => index + 1)
      while (lanes.length > 0) {
        await Promise.all(lanes.splice(0, LANES_AT_ONCE).map((at) => cutAt(cell, at, moment)))
      }
    })

    it.concurrent.each([
      { moment: 'before', what: '503, and a retry runs', tells: ['503 about:blank'] },
      { moment: 'after', what: 'the answer, looked up', tells: [] },
      { moment: 'in the reply', what: 'the answer, looked up', tells: [] },
      { moment: 'silent before', what: '503, and a retry runs', tells: ['503 about:blank'] },
    ] as const)('$moment COMMIT: $what', async ({ moment, tells }) => {
      await onLane(stage, cell, async ({ proxy, receive }) => {
        const { port } = await receive(
          moment === 'silent before' ? {} : { store: { ...PATIENT, resolveMs: 10_000 } },
        )
        await retry(port, newKey())
        const key = newKey()
        proxy.cutAt({ at: /^commit( and chain)?$/i, moment })
        const breaking = breakOnceSilent(proxy)
        const { before, final } = await retry(port, key)
        clearInterval(breaking)
        expect(proxy.cuts).toHaveLength(1)
        await proxy.heal()
        expect(told(before).slice(0, 1)).toEqual(tells)
        await expectOnce(stage, port, { key, final })
      })
    })
  })
})
