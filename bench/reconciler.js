/*
 * Reconciles the identities of a migration, or only makes the look-ups of a reconciliation. Asked over
 * IPC with `{ build, url, isOurs }`; answers with microseconds of processor time for an identity.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importEntry } from './build.js'
import { recordOf } from './migration-record.js'

const IDENTITIES = 500
const AT_ONCE = 8

/** Users whom no other process has imported into the same core. */
const FIRST = process.pid * IDENTITIES
const users = Array.from({ length: IDENTITIES }, (_, index) => recordOf(FIRST + index))
let work

/** Runs the migration, and returns the work of a turn. */
async function migrate({ build, url, isOurs }) {
  const { coreClient, fileJournal, openMigration } = await importEntry(build, './migration')
  const core = coreClient({ baseUrl: url, apiKey: 'an-api-key-of-the-benchmark' })
  const migration = await openMigration({
    core,
    source: {
      name: 'bench',
      records: async function* () {
        yield* users
      },
    },
    journal: await fileJournal(join(mkdtempSync(join(tmpdir(), 'bench-migration-')), 'journal')),
    lookUps: AT_ONCE,
    pollSeconds: 1,
  })
  assertReconciled(await migration.run())
  if (!isOurs) {
    await migration.close()
    return () => lookUpAll(core)
  }
  return async () => assertReconciled(await migration.reconcile())
}

function assertReconciled({ state, counts, findings }) {
  if (counts.reconciled === IDENTITIES) return
  throw new Error(`${state}: ${JSON.stringify({ counts, findings })}`)
}

async function lookUpAll(core) {
  const left = users.values()
  const keepWorking = async () => {
    for (const user of left) {
      if (!(await lookUp(core, user))) throw new Error('the account is not that of the record')
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, keepWorking))
}

async function lookUp(core, { externalUserId }) {
  const coreUserId = await core.coreIdOf(externalUserId)
  const account = await core.user(coreUserId)
  const ofPublic = await core.rolesOf('public', externalUserId)
  const ofShop = await core.rolesOf('shop', externalUserId)
  const metadata = await core.metadataOf(externalUserId)
  return account !== undefined && ofPublic.length + ofShop.length === 3 && metadata.plan === 'pro'
}

async function takeTurn(question) {
  work ??= await migrate(question)
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return { microseconds: (user + system) / IDENTITIES }
}

process.on('message', async (question) => {
  process.send(await takeTurn(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
