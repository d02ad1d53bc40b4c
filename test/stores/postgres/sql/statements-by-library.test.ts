import { expect, it } from 'vitest'
import { checkPostgres } from '../../../../src/stores/postgres/check.js'
import type { Statement } from '../../../../src/stores/postgres/runner.js'
import { migration } from '../../../../src/stores/postgres/schema.js'
import {
  createStatements,
  isEndedByHandler,
  recordIds,
  tokenIds,
} from '../../../../src/stores/postgres/sql/statements.js'
import { sqlStateOf } from '../../../../src/stores/postgres/sql-state.js'
import { sweep } from '../../../../src/stores/postgres/sweep.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { ADAPTERS } from '../adapters/libraries.js'
import { contextOf } from '../store-parts.js'

const server = await sharedPostgres()
await server.query(migration())
const statements = createStatements('service_auth')
const LIMITS = { acquireMs: 2000, transactionMs: 5000 }
const KEEPING = { result: Buffer.from([0, 255]), retentionMs: 0 }

it.each(ADAPTERS)('$name runs all statements and tells their rows', async ({ name, open }) => {
  const { runner, close } = await open(server.url, 3)
  const ids = recordIds(name, 'f')
  const ask = (tx: unknown, { text, values }: Statement) => runner.query(tx, text, values)
  const token = { ids: tokenIds(name), ttlMs: 0 }
  const opening = { transactionMs: 5000, token }

  const fence = await runner.transaction(async (tx) => {
    const opened = statements.readBeginResult(await ask(tx, statements.begin(ids, opening)))
    if (opened.found !== 'nothing') throw new Error(opened.found)
    await ask(tx, statements.insertRecord(ids, { ...KEEPING, fence: opened.fence }))
    return opened.fence
  }, LIMITS)
  const looked = statements.readRecord(await ask(undefined, statements.findRecord(ids)))
  expect(looked).toEqual({ isSame: true, result: KEEPING.result, run: fence })

  const tripped = await runner
    .transaction((tx) => ask(tx, statements.insertRecord(ids, { ...KEEPING, fence: '1' })), LIMITS)
    .catch((error) => error)
  expect(isEndedByHandler(tripped), String(tripped)).toBe(true)
  const taken = await ask(undefined, statements.insertRecordSeparately(ids, KEEPING)).catch(
    (error) => error,
  )
  expect(isEndedByHandler(taken)).toBe(false)
  expect(statements.readConsumed(await ask(undefined, statements.consume(token)))).toBe(false)
  const alone = statements.insertRecordSeparately(recordIds(`${name} 2`, 'f'), KEEPING, {
    ...token,
    isRequired: true,
  })
  expect(statements.readKept(await ask(undefined, alone))).toBe(false)
  await ask(undefined, statements.awaitRun(ids, { waitMs: 100 }))
  expect(await checkPostgres(contextOf(runner), true)).toEqual([])
  expect(await sweep(contextOf(runner))).toBe(2)
  await close()
})

it.each(ADAPTERS)('$name tells a conflict of isolation levels by its SQLSTATE', async (adapter) => {
  const { runner, close } = await adapter.open(server.url, 2)
  const table = `count_of_${adapter.name.replace(/\W/g, '_')}`
  await server.query(`create table ${table} (n int); insert into ${table} values (0)`)
  const add = (tx: unknown) => runner.query(tx, `update ${table} set n = n + 1`, [])
  const conflict = runner.transaction(
    async (tx) => {
      await runner.query(tx, `select n from ${table}`, [])
      await add(undefined)
      await add(tx)
    },
    { ...LIMITS, isolation: 'repeatable read' },
  )
  expect(sqlStateOf(await conflict.catch((error) => error))).toBe('40001')
  await close()
})
