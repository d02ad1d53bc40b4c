import { createHash } from 'node:crypto'
import {
  type CoupledIdempotencyOptions,
  memoryStore,
  requireIdempotencyKey,
} from 'express-service-auth'
import { fromPg, type PostgresStoreOptions, postgresStore } from 'express-service-auth/postgres'
import { Pool } from 'pg'
import { describe, expect, it } from 'vitest'
import { effectIdOf } from '../../../src/stores/postgres/postgres-store.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

/** Reaches nothing: what is tested here fails before that, or never asks. */
const nowhere = () => new Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/nothing' })
const store = (options?: PostgresStoreOptions) =>
  postgresStore(fromPg(nowhere()), { sweepSeconds: false, ...options })

describe('bad input is a TypeError', () => {
  it.each([
    ['a pool', nowhere()],
    ['nothing', undefined],
    ['half a runner', { query: async () => [] }],
  ])('%s for the runner', (_what, runner) => {
    expect(() => postgresStore(runner as never)).toThrow(TypeError)
  })

  it.each<[string, Record<string, unknown>]>([
    ['an unknown option', { pool: 3 }],
    ['a schema in capitals', { schema: 'Orders' }],
    ['transactionMs below 100', { transactionMs: 99 }],
    ['transactionMs above an hour', { transactionMs: 3_600_001 }],
    ['transactionMs with a fraction', { transactionMs: 100.5 }],
    ['acquireMs of 0', { acquireMs: 0 }],
    ['acquireMs above a minute', { acquireMs: 60_001 }],
    ['resolveMs of 0', { resolveMs: 0 }],
    ['sweepSeconds of 0', { sweepSeconds: 0 }],
    ['sweepSeconds above a day', { sweepSeconds: 86_401 }],
    ['read uncommitted', { isolation: 'read uncommitted' }],
    ['SQL for the isolation', { isolation: 'serializable; drop table effect' }],
  ])('%s', (_what, options) => {
    expect(() => postgresStore(fromPg(nowhere()), options as never)).toThrow(TypeError)
    // What names a value may name a secret.
    expect(() => postgresStore(fromPg(nowhere()), options as never)).not.toThrow('drop table')
  })

  it.each<[string, Record<string, unknown>]>([
    ['leaseSeconds', { leaseSeconds: 30 }],
    ['maxRunSeconds', { maxRunSeconds: 60 }],
    ['whenAbandoned', { whenAbandoned: 'refuse' }],
    ['more than 64 MiB', { maxResponseBytes: 67_108_865 }],
    ['an unknown option', { isolation: 'serializable' }],
  ])('%s beside a coupled store', (_what, options) => {
    const given = { store: store(), ...options } as unknown as CoupledIdempotencyOptions
    expect(() => requireIdempotencyKey(given)).toThrow(TypeError)
  })

  it('a store both leased and coupled', () => {
    const both = { ...memoryStore(), ...store() }
    expect(() => requireIdempotencyKey({ store: both })).toThrow(TypeError)
  })

  it.each([{ batch: 0 }, { batch: 50_001 }, { limit: 0 }, { limit: 1.5 }, { other: 1 }])(
    '%j for sweep',
    async (options) => {
      await expect(store().sweep(options as never)).rejects.toThrow(TypeError)
    },
  )
})

describe('what belongs to a run needs one', () => {
  const WRONG = { code: 'wrong_wiring' }

  it('a request without a run, of another store, or answered', async () => {
    const other = store()
    const found: unknown[] = []
    const attempt = (work: () => unknown): void => {
      try {
        found.push(work())
      } catch (error) {
        found.push(error)
      }
    }
    const receiver = await openCoupled({
      url: ledger.url,
      more: {
        outer: [
          (request, _response, next) => {
            attempt(() => receiver.store.transactionOf(request))
            next()
          },
        ],
      },
      handler: (own) => (request, response) => {
        attempt(() => other.transactionOf(request))
        attempt(() => other.keepWrites(request))
        attempt(() => other.effectId(request, 'mail'))
        response.status(200).json({})
        attempt(() => own.transactionOf(request))
        attempt(() => own.keepWrites(request))
        attempt(() => own.effectId(request, 'mail'))
      },
    })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 200 })
    expect(found).toEqual(Array.from({ length: 7 }, () => expect.objectContaining(WRONG)))
  })

  it('effectId: SHA-256 but for the version and the variant, today as tomorrow', () => {
    const bytes = createHash('sha256').update('6:effect6:record4:mail').digest('hex')
    const id = effectIdOf('record', 'mail')
    expect(id).toBe('e7d0a8dc-e30b-863f-830c-d7115d183533')
    const withoutMarks = (hex: string) => hex.replace(/^(.{12}).(.{3})./, '$1?$2?')
    expect(withoutMarks(id.replaceAll('-', ''))).toBe(withoutMarks(bytes.slice(0, 32)))
  })

  it('effectId: the same in every run, another for every name, key and caller', async () => {
    const ids: string[] = []
    const receiver = await openCoupled({
      url: ledger.url,
      handler: (own) => (request, response) => {
        ids.push(own.effectId(request, 'mail'), own.effectId(request, 'bill'))
        expect(() => own.effectId(request, '')).toThrow(TypeError)
        expect(() => own.effectId(request, undefined as never)).toThrow(TypeError)
        response.sendStatus(503)
      },
    })
    const key = newKey()
    for (const given of [
      { key },
      { key },
      { key: newKey() },
      { key, claims: { sub: 'reporting' } },
    ]) {
      await call(receiver.port, given)
    }
    expect(ids.slice(0, 2)).toEqual(ids.slice(2, 4))
    expect(new Set(ids).size).toBe(6)
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
  })
})

describe('events', () => {
  it('transaction_unused: told of an answer below 400 alone', async () => {
    const events = hearIdempotency()
    const answers = [200, 204, 303, 404, 429, 500]
    const receiver = await openCoupled({
      url: ledger.url,
      handler: () => (_request, response) => void response.status(answers.shift() ?? 500).end(),
    })
    for (let left = answers.length; left > 0; left--) await call(receiver.port, { key: newKey() })
    const unused = events.filter(({ reason }) => reason === 'transaction_unused')
    expect(unused.map((event) => 'status' in event && event.status)).toEqual([200, 204, 303])
    expect(unused[0]).toMatchObject({
      by: 'requireIdempotencyKey',
      caller: 'billing',
      outcome: 'accepted',
      fence: expect.any(Number),
      record: expect.any(String),
    })
  })
})
