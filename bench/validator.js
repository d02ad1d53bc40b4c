/*
 * Reads records of a migration: with `JSON.parse` alone, or with `validateUser` after it. Asked over
 * IPC with `{ build, isOurs, turnMs }`; answers with microseconds of processor time for a record.
 */
import { importEntry } from './build.js'
import { recordOf } from './migration-record.js'

const RECORDS = 5000

const CONTEXT = {
  tenants: new Set(['public', 'shop']),
  roles: new Set(['customer', 'editor']),
  features: new Set(['account_linking', 'multi_tenancy', 'mfa']),
}

const rows = Array.from({ length: RECORDS }, (_, index) => JSON.stringify(recordOf(index)))
let next = 0

async function takeTurn({ build, isOurs, turnMs }) {
  const { validateUser } = await importEntry(build, './migration')
  const read = isOurs
    ? (row) => validateUser(JSON.parse(row), CONTEXT).ok
    : (row) => JSON.parse(row).externalUserId !== undefined
  const start = process.cpuUsage()
  const end = performance.now() + turnMs
  let records = 0
  while (performance.now() < end) {
    for (let count = 0; count < 100; count += 1) {
      if (!read(rows[next])) throw new Error(`record ${next} is invalid`)
      next = (next + 1) % RECORDS
    }
    records += 100
  }
  const { user, system } = process.cpuUsage(start)
  return { microseconds: (user + system) / records }
}

process.on('message', async (question) => {
  process.send(await takeTurn(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
