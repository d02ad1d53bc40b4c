import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'
import { cellsOf, VERSIONS } from './matrix.js'
import { expectOnce, expectUnavailable, retry, SLACK_MS, told } from './retries.js'
import { LIMITS, onLane, openStage, PATIENT, type Stage } from './stage.js'

describe.each(VERSIONS)('a run that goes wrong, Postgres %i', (version) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage(version)
    await stage.postgres.query('create table pair (id int primary key, n int)')
    await stage.postgres.query('insert into pair values (1, 0), (2, 0)')
  })
  afterAll(() => stage.close())

  describe.each(cellsOf(['directly', 'through pgbouncer']))('$title', (cell) => {
    it.concurrent('it hangs: 503, its signal aborts, and its late answer goes nowhere', () =>
      onLane(stage, cell, async ({ receive }) => {
        let isAborted = false
        let isAnsweredLate = false
        const { port } = await receive({
          async afterWrite(request, { run }) {
            if (run > 1) return
            const { signal } = request.idempotency as { signal: AbortSignal }
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
            isAborted = true
            await delay(50)
            isAnsweredLate = true
          },
        })
        const key = newKey()
        await expectUnavailable(port, key, LIMITS.transactionMs)
        const { final } = await retry(port, key)
        await until('the late answer', async () => isAnsweredLate)
        expect(isAborted).toBe(true)
        await expectOnce(stage, port, { key, final })
      }))

    it.concurrent('it hangs in a statement: 503, and a retry runs', () =>
      onLane(stage, cell, async ({ receive }) => {
        const { port } = await receive({
          afterWrite: (_request, { run, execute }) =>
            run === 1 && execute('select 1 from pg_sleep(30)'),
        })
        const key = newKey()
        // Of our limit, or what the handler makes of the server's, which is the same.
        await expectUnavailable(port, key, LIMITS.transactionMs, [500, 503])
        const { final, tookMs } = await retry(port, key)
        expect(tookMs).toBeLessThan(LIMITS.transactionMs + SLACK_MS)
        await expectOnce(stage, port, { key, final })
      }))

    it.concurrent('its caller hangs up: a retry gets its answer', () =>
      onLane(stage, cell, async ({ receive }) => {
        let isWritten = false
        const { port } = await receive({
          store: PATIENT,
          async afterWrite({ socket }) {
            isWritten = true
            await until('the end of the connection', async () => socket.destroyed)
          },
        })
        const key = newKey()
        const { socket } = callRaw(port, { key })
        await until('the write', async () => isWritten)
        socket.destroy()
        const { final } = await retry(port, key)
        expect(final.headers['idempotent-replayed']).toEqual(['true'])
        await expectOnce(stage, port, { key, final })
      }))
  })

  describe.each(cellsOf(['directly'], { onlyPg: true }))('$title', (cell) => {
    it('40P01: two handlers that wait for each other', () =>
      onLane(stage, cell, async ({ receive }) => {
        let holders = 0
        const { port } = await receive({
          store: { ...PATIENT, transactionMs: 5000 },
          async afterWrite({ path }, { execute }) {
            for (const id of path.endsWith('/odd') ? [1, 2] : [2, 1]) {
              const update = execute(`update pair set n = n + 1 where id = ${id}`)
              await Promise.resolve(update).catch(() => {})
              holders += 1
              await until('each holds a row', async () => holders >= 2)
            }
          },
        })
        const keys = { odd: newKey(), even: newKey() }
        const answers = await Promise.all([
          call(port, { key: keys.odd, path: '/orders/odd' }),
          call(port, { key: keys.even, path: '/orders/even' }),
        ])
        expect(answers.map(({ status }) => status).sort()).toEqual([201, 500])
        for (const [name, key] of Object.entries(keys)) {
          const path = `/orders/${name}`
          const { final } = await retry(port, key, path)
          await expectOnce(stage, port, { key, final, path })
        }
      }))
  })
})

describe.each(VERSIONS)('a database that restarts, Postgres %i', (version) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage(version)
  })
  afterAll(() => stage.close())

  it.each(cellsOf(['directly']))('$title: 503, and a retry runs', async (cell) => {
    await onLane(stage, cell, async ({ receive }) => {
      const { port } = await receive({
        store: { transactionMs: 10_000 },
        async afterWrite(_request, { run }) {
          if (run > 1) return
          await stage.postgres.stopImmediate()
          await stage.postgres.restart()
        },
      })
      const key = newKey()
      const { before, final } = await retry(port, key)
      expect(told(before)[0]).toBe('503 about:blank')
      await expectOnce(stage, port, { key, final })
    })
  })
})
