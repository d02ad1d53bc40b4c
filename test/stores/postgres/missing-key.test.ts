import { randomUUID } from 'node:crypto'
import type { RequestHandler } from 'express'
import { describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import {
  type CoupledOptions,
  createLedger,
  openCoupled,
} from '../../support/receiver/coupled-receiver.js'
import { call } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

const RUN = { options: { missingKey: 'run' } } as const
const insertOf = (effect: string): string => `insert into effect (key) values ('${effect}')`
const newEffect = (): string => randomUUID()

const open = (given: Omit<CoupledOptions, 'url'>) =>
  openCoupled({ url: ledger.url, ...RUN, ...given })

const writing =
  (effect: string, answer: RequestHandler): CoupledOptions['handler'] =>
  (store) =>
  async (request, response, next) => {
    await store.transactionOf(request).query(insertOf(effect))
    await answer(request, response, next)
  }

interface Ending {
  readonly what: string
  readonly status: number
  readonly effects: number
  /** The events after `key_missing`. */
  readonly reasons: readonly string[]
  readonly keeps?: true
}

const ENDINGS: readonly Ending[] = [
  { what: 'a success', status: 201, effects: 1, reasons: [] },
  { what: 'a refusal', status: 422, effects: 0, reasons: ['rolled_back'] },
  { what: 'a refusal after keepWrites', status: 422, effects: 1, reasons: [], keeps: true },
  { what: 'a 500', status: 500, effects: 0, reasons: ['rolled_back'] },
]

describe("missingKey: 'run'", () => {
  it.each(ENDINGS)('$what', async ({ status, effects, reasons, keeps }) => {
    const events = hearIdempotency()
    const effect = newEffect()
    const faults: unknown[] = []
    const receiver = await open({
      handler: (store) =>
        writing(effect, async (request, response) => {
          if (keeps) store.keepWrites(request)
          try {
            store.effectId(request, 'mail')
          } catch (error) {
            faults.push(error, request.idempotency)
          }
          response.status(status).json({ effects: await ledger.effects(effect) })
        })(store),
    })
    const records = await ledger.records()
    for (const run of [1, 2]) {
      const answer = await call(receiver.port)
      expect(answer.status).toBe(status)
      expect(answer.headers['idempotent-replayed']).toBeUndefined()
      // Nothing is committed before the answer is complete.
      expect(JSON.parse(answer.body.toString())).toEqual({ effects: (run - 1) * effects })
      expect(await ledger.effects(effect)).toBe(run * effects)
    }
    expect(await ledger.records()).toBe(records)
    const wrong = expect.objectContaining({ code: 'wrong_wiring' })
    expect(faults).toEqual([wrong, undefined, wrong, undefined])
    const each = ['key_missing', ...reasons]
    expect(events.map(({ reason }) => reason)).toEqual([...each, ...each])
    expect(events.every(({ record }) => record === undefined)).toBe(true)
  })

  it('a handler that ends its transaction itself', async () => {
    const events = hearIdempotency()
    const effect = newEffect()
    const answers = [201, 500]
    const receiver = await open({
      handler: (store) =>
        writing(effect, async (request, response) => {
          await store.transactionOf(request).query('select 1; commit')
          response.status(answers.shift() ?? 0).json({})
        })(store),
    })
    const records = await ledger.records()
    for (const status of [...answers]) {
      expect(await call(receiver.port)).toMatchObject({ status })
    }
    expect(await ledger.effects(effect)).toBe(2)
    expect(await ledger.records()).toBe(records)
    const each = ['key_missing', 'uncoupled']
    expect(events.map(({ reason }) => reason)).toEqual([...each, ...each])
  })

  it('a response that is too large, or streams, is committed before its first byte', async () => {
    const effect = newEffect()
    for (const [type, status, effects] of [
      ['text/plain', 200, 1],
      ['text/event-stream', 200, 2],
      ['text/event-stream', 500, 2],
    ] as const) {
      const seen: number[] = []
      const receiver = await open({
        options: { ...RUN.options, maxResponseBytes: 10 },
        handler: writing(effect, (_request, response) => {
          response.status(status).type(type).write('more than ten bytes')
          setTimeout(async () => {
            seen.push(await ledger.effects(effect))
            response.end('!')
          }, 200)
        }),
      })
      const answer = await call(receiver.port)
      expect(answer.body.toString()).toBe('more than ten bytes!')
      expect(answer.status).toBe(status)
      expect(seen).toEqual([effects])
    }
  })

  it('a connection lost before COMMIT is the 503, and rolled back', async () => {
    const effect = newEffect()
    const receiver = await open({
      handler: (store) => async (request, response) => {
        const tx = store.transactionOf(request)
        await tx.query(insertOf(effect))
        const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
        await ledger.query('select pg_terminate_backend($1)', [rows[0]?.pid])
        response.sendStatus(201)
      },
    })
    receiver.pool.on('error', () => {})
    expect(await call(receiver.port)).toMatchObject({ status: 503 })
    expect(await ledger.effects(effect)).toBe(0)
  })
})
