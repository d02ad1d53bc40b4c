import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresOutage } from '../../support/postgres/postgres-proxy.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'
import { withResolvers } from '../../support/with-resolvers.js'
import { cellsOf, VERSIONS } from './matrix.js'
import { expectOnce, expectUnavailable, retry, told } from './retries.js'
import { type Lane, LIMITS, onLane, openStage, PATIENT, type Stage } from './stage.js'

const OUTAGES: readonly PostgresOutage[] = ['refused', 'accepted and closed', 'accepted and silent']

describe.each(VERSIONS)('a database that is unreachable, Postgres %i', (version) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage(version)
  })
  afterAll(() => stage.close())

  describe.each(cellsOf(['directly']))('$title', (cell) => {
    it.concurrent.each(OUTAGES)('%s, from the start or later: 503, and back', async (outage) => {
      for (const isLater of [false, true]) {
        await onLane(stage, cell, async ({ proxy, receive }) => {
          const { port } = await receive()
          if (isLater) await retry(port, newKey())
          const key = newKey()
          proxy.fail(outage)
          proxy.cut()
          await expectUnavailable(port, key, LIMITS.acquireMs + LIMITS.resolveMs)
          await proxy.heal()
          const { final } = await retry(port, key)
          await expectOnce(stage, port, { key, final })
        })
      }
    })

    it.concurrent('silent on open connections: 503, and back', async () => {
      await onLane(stage, cell, async ({ proxy, receive }) => {
        const { port } = await receive()
        await retry(port, newKey())
        const key = newKey()
        proxy.fail('accepted and silent')
        proxy.hold()
        await expectUnavailable(port, key, LIMITS.acquireMs + LIMITS.resolveMs)
        await proxy.heal()
        const { final } = await retry(port, key)
        await expectOnce(stage, port, { key, final })
      })
    })

    it.concurrent('slow, but within the limits: the answer', async () => {
      await onLane(stage, cell, async ({ proxy, receive }) => {
        const { port } = await receive({
          store: { acquireMs: 5000, transactionMs: 5000, resolveMs: 5000 },
        })
        await retry(port, newKey())
        proxy.delayMs(20)
        const key = newKey()
        const { before, final } = await retry(port, key)
        expect(told(before)).toEqual([])
        await expectOnce(stage, port, { key, final })
      })
    })

    it.concurrent('gone while a COMMIT is looked up: 503, then what is true', async () => {
      for (const moment of ['before', 'after'] as const) {
        await onLane(stage, cell, async (lane) => {
          const { port } = await receiveGoneAtCommit(lane)
          const key = newKey()
          lane.proxy.cutAt({ at: /^commit( and chain)?$/i, moment })
          await expectUnavailable(port, key, LIMITS.transactionMs + LIMITS.resolveMs)
          await lane.proxy.heal()
          const { final } = await retry(port, key)
          const isReplayed = final.headers['idempotent-replayed']?.[0] === 'true'
          expect(isReplayed).toBe(moment === 'after')
          await expectOnce(stage, port, { key, final })
        })
      }
    })

    it.concurrent('a pool that is exhausted: 503, then runs', async () => {
      await onLane(stage, cell, exhaust, { max: 2 })
    })

    it.concurrent('a pool that the handlers exhaust themselves: 503, then runs', async () => {
      await onLane(stage, cell, exhaustByHandlers, { max: 2 })
    })
  })

  /** Once the handler has answered, no new connection is taken. */
  async function receiveGoneAtCommit({ proxy, receive }: Lane) {
    const receiver = await receive({
      store: PATIENT,
      afterWrite: (_request, { run }) => run > 1 && proxy.fail('refused'),
    })
    await retry(receiver.port, newKey())
    return receiver
  }

  async function exhaust({ receive }: Lane): Promise<void> {
    const { promise: released, resolve: goOn } = withResolvers()
    let held = 0
    const { port } = await receive({
      store: { acquireMs: 300, transactionMs: 20_000 },
      async afterWrite({ path }) {
        if (!path.endsWith('/held')) return
        held += 1
        await released
      },
    })
    // To open a connection may take longer than `acquireMs`.
    const holding = [newKey(), newKey()].map((key) => retry(port, key, '/orders/held'))
    await until('two held connections', async () => held === 2)
    const key = newKey()
    await expectUnavailable(port, key, 300 + LIMITS.resolveMs)
    goOn()
    for (const { final } of await Promise.all(holding)) expect(final.status).toBe(201)
    expect(held, 'each has run once').toBe(2)
    const { final } = await retry(port, key)
    await expectOnce(stage, port, { key, final })
  }

  /** Each handler waits for a second connection of a pool of which all have one. */
  async function exhaustByHandlers({ opened, receive }: Lane): Promise<void> {
    let begun = 0
    let atOnce = 1
    const { port } = await receive({
      store: { acquireMs: 300 },
      async afterWrite() {
        begun += 1
        await until('the others', async () => begun >= atOnce)
        const limits = { acquireMs: 5000, statementMs: 5000 }
        await opened.runner.query(undefined, 'select 1', [], limits)
      },
    })
    await retry(port, newKey())
    begun = 0
    atOnce = 2
    const keys = [newKey(), newKey(), newKey(), newKey()]
    const answers = await Promise.all(keys.map((key) => call(port, { key })))
    // Whoever is given up first frees a connection, by which another may still answer.
    const statuses = answers.map(({ status }) => status)
    expect(statuses).toContain(503)
    expect([503, 201]).toEqual(expect.arrayContaining([...new Set(statuses)]))
    for (const [index, key] of keys.entries()) {
      const { final } = await retry(port, key)
      if (statuses[index] === 201) expect(final.body).toEqual(answers[index]?.body)
      await expectOnce(stage, port, { key, final })
    }
  }
})
