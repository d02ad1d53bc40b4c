import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { TransactionEndedError } from '../../../../src/stores/postgres/transaction-proxy/rejected-call.js'
import { revocableTransaction } from '../../../../src/stores/postgres/transaction-proxy/transaction-proxy.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { until } from '../../../support/until.js'
import { OPEN_RUNNERS, type OpenRunner } from './open-runners.js'

const LIMITS = { acquireMs: 2000, transactionMs: 5000 }
const ALONE = { acquireMs: 2000, statementMs: 2000 }
/** A library may wait before it connects again. */
const PATIENT = { ...ALONE, acquireMs: 10_000 }
/** One in five of them took the connection of postgres.js for good. */
const ROUNDS_OF_LOSS = 20

let server: PostgresServer
let opened: OpenRunner[] = []

beforeAll(async () => {
  server = await startPostgres()
  await server.query('create table ledger (id int primary key, note bytea)')
  await server.query('create table strict (id int unique deferrable initially deferred)')
})
afterAll(() => server.stop())
beforeEach(() => server.query('truncate ledger, strict'))
afterEach(async () => {
  await Promise.all(opened.map((each) => each.end()))
  opened = []
})

async function ledger(): Promise<unknown[]> {
  const rows = await server.query('select id from ledger order by id')
  return rows.map(({ id }) => id)
}

const statement = (text: string, ...values: unknown[]) => ({ text, values })
const insert = (id: number) =>
  statement('insert into ledger values ($1, $2)', id, Buffer.from([id]))
const writing = (id: number) => `insert into ledger values (${id})`

/** As the store does: in one round trip where the library can. */
async function commit(runner: TransactionRunner<unknown>, tx: unknown, id: number): Promise<void> {
  if (runner.commitWith) return runner.commitWith(tx, [insert(id)])
  const { text, values } = insert(id)
  await runner.query(tx, text, values)
}

describe.each(OPEN_RUNNERS)('a runner on %s', (name, openRunner) => {
  function open(max = 1): OpenRunner {
    const one = openRunner(server.url, max)
    opened.push(one)
    return one
  }

  it('commits what was written by the library, by statements and in savepoints', async () => {
    const { runner, write, writeNested } = open()
    const result = await runner.transaction(async (tx) => {
      const { transaction: handle } = revocableTransaction(tx)
      await write(handle, writing(1))
      await writeNested(handle, writing(2))
      await expect(writeNested(handle, writing(1))).rejects.toThrow()
      if (name === 'pg') await write(handle, 'rollback to savepoint nested')
      const rows = await runner.query(tx, 'select $1::text as said, id from ledger where id = $2', [
        'a',
        2,
      ])
      expect(rows).toEqual([{ said: 'a', id: 2 }])
      await commit(runner, tx, 3)
      return 'done'
    }, LIMITS)
    expect(result).toBe('done')
    expect(await ledger()).toEqual([1, 2, 3])
  })

  it('batches, in the isolation that was asked for', async () => {
    const { runner } = open()
    const rows = await runner.transaction(
      (tx) =>
        runner.batch?.(tx, [
          statement("set local lock_timeout = '5s'"),
          statement('select 1 as one'),
          statement("set local statement_timeout = '5s'"),
          statement('show transaction_isolation'),
          statement('select 2 as two'),
        ]) ?? Promise.resolve([]),
      { ...LIMITS, isolation: 'repeatable read' },
    )
    const isolation = [{ transaction_isolation: 'repeatable read' }]
    expect(rows).toEqual([[], [{ one: 1 }], [], isolation, [{ two: 2 }]])
  })

  it('rolls back when the work rejects, and goes on', async () => {
    const { runner, write } = open()
    const failed = runner.transaction(async (tx) => {
      await write(tx, writing(1))
      throw new Error('no')
    }, LIMITS)
    await expect(failed).rejects.toThrow('no')
    expect(
      await runner.query(undefined, 'select count(*)::int as n from ledger', [], ALONE),
    ).toEqual([{ n: 0 }])
  })

  it('takes no rollback for a success', async () => {
    const { runner, write } = open()
    const swallowed = runner.transaction(async (tx) => {
      await write(tx, writing(1))
      await Promise.resolve(write(tx, writing(1))).catch(() => {})
    }, LIMITS)
    await expect(swallowed).rejects.toThrow()
    const conflict = runner.transaction(async (tx) => {
      await write(tx, writing(1))
      await commit(runner, tx, 1)
    }, LIMITS)
    await expect(conflict).rejects.toThrow()
    const deferred = runner.transaction(async (tx) => {
      await write(tx, 'insert into strict values (1), (1)')
      await commit(runner, tx, 2)
    }, LIMITS)
    const error = await deferred.catch((reason) => reason)
    expect(error.cause ?? error).toMatchObject({ code: '23505' })
    expect(await ledger()).toEqual([])
  })

  it('writes nothing late, though another request owns the connection', async () => {
    const { runner, write, writeNested } = open()
    const { late, handle } = await runner.transaction(async (tx) => {
      const membrane = revocableTransaction(tx)
      const unsent = name === 'pg' ? undefined : write(membrane.transaction, writing(10))
      const nested = delay(50).then(() => writeNested(membrane.transaction, writing(11)))
      nested.catch(() => {})
      await write(membrane.transaction, writing(1))
      membrane.revoke()
      await commit(runner, tx, 2)
      return { late: { unsent, nested }, handle: membrane.transaction }
    }, LIMITS)
    const next = runner.transaction(async (tx) => {
      await write(tx, writing(3))
      if (name === 'postgres.js') {
        await expect(Promise.resolve(late.unsent)).rejects.toThrow(TransactionEndedError)
      }
      await expect(Promise.resolve(write(handle, writing(12)))).rejects.toThrow(
        TransactionEndedError,
      )
      await expect(late.nested).rejects.toThrow(TransactionEndedError)
      await commit(runner, tx, 4)
    }, LIMITS)
    await next
    const written = (await ledger()).filter((id) => id !== 10)
    expect(written).toEqual([1, 2, 3, 4])
  })

  // pg has no nested transactions.
  const testNested = name === 'pg' ? () => {} : it
  testNested('lets a nested transaction that outlives the answer touch nothing', async () => {
    const { runner, write, writeNested } = open()
    const nested = await runner.transaction(async (tx) => {
      const { transaction: handle, revoke } = revocableTransaction(tx)
      const outliving = writeNested(handle, `select pg_sleep(2) /* outliving ${name} */`)
      outliving.catch(() => {})
      // By its text: a statement that an earlier test gave up may still sleep.
      await until('it sleeps', async () => {
        const sleeping = `select 1 from pg_stat_activity
          where wait_event = 'PgSleep' and query like '%outliving ${name} %'`
        return (await server.query(sleeping)).length > 0
      })
      revoke()
      await commit(runner, tx, 1)
      return { outliving }
    }, LIMITS)
    await runner.transaction(async (tx) => {
      await expect(nested.outliving).rejects.toThrow(TransactionEndedError)
      await write(tx, writing(2))
      await commit(runner, tx, 3)
    }, LIMITS)
    expect(await ledger()).toEqual([1, 2, 3])
  })

  it('refuses a handler its own commit and rollback', async () => {
    const { runner, write } = open()
    await runner.transaction(async (tx) => {
      const { transaction: handle } = revocableTransaction(tx)
      for (const text of ['commit', '-- so\n ROLLBACK', 'begin', 'end']) {
        await expect(Promise.resolve().then(() => write(handle, text))).rejects.toThrow(
          /neither begins/,
        )
      }
      await write(handle, writing(1))
      await commit(runner, tx, 2)
    }, LIMITS)
    expect(await ledger()).toEqual([1, 2])
  })

  it('gives up waiting for a connection, and runs nothing later', async () => {
    const { runner } = open()
    let calls = 0
    let release = (): void => {}
    let held: Promise<void> | undefined
    await new Promise<void>((begun) => {
      const hold = () =>
        new Promise<void>((resolve) => {
          release = resolve
          begun()
        })
      held = runner.transaction(hold, LIMITS)
    })
    const work = async (): Promise<void> => {
      calls++
    }
    const late = runner.transaction(work, { ...LIMITS, acquireMs: 20 })
    const alone = runner.query(undefined, writing(1), [], { ...ALONE, acquireMs: 20 })
    await expect(late).rejects.toThrow('20 ms')
    await expect(alone).rejects.toThrow('20 ms')
    release()
    await held
    expect(await runner.query(undefined, 'select 1 as one', [], ALONE)).toEqual([{ one: 1 }])
    expect(calls).toBe(0)
    expect(await ledger()).toEqual([])
  })

  it.each(['idle', 'in a statement', 'before the commit'])(
    'rejects when its connection is lost %s',
    async (when) => {
      const { runner, write } = open()
      const kill = (pid: unknown) => server.query('select pg_terminate_backend($1)', [pid])
      const lost = runner.transaction(async (tx) => {
        const [row] = await runner.query(tx, 'select pg_backend_pid() as pid', [])
        await write(tx, writing(1))
        if (when === 'in a statement') {
          const sleeping = Promise.resolve(write(tx, 'select pg_sleep(10)'))
          sleeping.catch(() => {})
          await delay(20)
          await kill(row?.['pid'])
          await sleeping
        }
        await kill(row?.['pid'])
        if (when === 'idle') await delay(50)
        await commit(runner, tx, 2)
      }, LIMITS)
      await expect(lost).rejects.toThrow()
      expect(await ledger()).toEqual([])
      const again = await runner.query(undefined, 'select 1 as one', [], PATIENT)
      expect(again).toEqual([{ one: 1 }])
    },
  )

  it('gets a connection again, in whatever moment it has lost one', async () => {
    for (let round = 0; round < ROUNDS_OF_LOSS; round++) {
      const { runner, write, end } = openRunner(server.url, 1)
      const lost = runner.transaction(async (tx) => {
        const [row] = await runner.query(tx, 'select pg_backend_pid() as pid', [])
        await write(tx, writing(1))
        await server.query('select pg_terminate_backend($1)', [row?.['pid']])
        await commit(runner, tx, 2)
      }, LIMITS)
      await expect(lost).rejects.toThrow()
      expect(await runner.query(undefined, 'select 1 as one', [], PATIENT)).toEqual([{ one: 1 }])
      await end()
    }
  })

  it('bounds a statement, and goes on', async () => {
    const { runner } = open()
    const slow = runner.query(undefined, 'select pg_sleep(10)', [], { ...ALONE, statementMs: 50 })
    await expect(slow).rejects.toThrow()
    expect(await runner.query(undefined, 'select 1 as one', [], ALONE)).toEqual([{ one: 1 }])
  })
})
