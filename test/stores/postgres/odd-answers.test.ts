import { Client } from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()

async function openLedger() {
  const ledger = await createLedger(postgres)
  onTestFinished(() => ledger.drop())
  return ledger
}

it('something else answers while a replay uses its token up: no process ends', async () => {
  const ledger = await openLedger()
  const faults: unknown[] = []
  const note = (error: unknown): void => void faults.push(error)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  let isImpatient = false
  const receiver = await openCoupled({
    url: ledger.url,
    options: { singleUse: true },
    more: {
      outer: [
        (_request, response, next) => {
          if (isImpatient) setTimeout(() => response.status(504).end(), 50)
          next()
        },
      ],
    },
    handler: () => (_request, response) => void response.sendStatus(201),
  })
  const key = newKey()
  expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  const blocker = new Client({ connectionString: ledger.url })
  await blocker.connect()
  await blocker.query('begin; lock table service_auth.used_token in access exclusive mode')
  isImpatient = true
  expect(await call(receiver.port, { key })).toMatchObject({ status: 504 })
  await blocker.query('rollback')
  await blocker.end()
  await expect.poll(() => receiver.errors.length).toBe(1)
  expect(faults).toEqual([])
})
