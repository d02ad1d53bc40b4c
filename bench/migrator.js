/*
 * Stages users into a core, by a run of a migration or by plain `fetch`. Asked over IPC with
 * `{ build, url, apiKey, isOurs, users, isMeasuringHeap }`; answers with the milliseconds of staging, and with
 * the peak of the heap in bytes where that is measured.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importEntry } from './build.js'
import { recordOf } from './migration-record.js'

const BATCH_USERS = 1000
const MAX_USERS = 100_000
/** Users whom no other process has imported into the same core. */
const FIRST = process.pid * MAX_USERS

function* records(users) {
  for (let index = 0; index < users; index += 1) yield recordOf(FIRST + index)
}

async function stagePlainly({ url, apiKey, users }) {
  const headers = { 'api-key': apiKey, 'content-type': 'application/json; charset=utf-8' }
  const startedAt = performance.now()
  for (let from = 0; from < users; from += BATCH_USERS) {
    const batch = Array.from({ length: BATCH_USERS }, (_, index) => recordOf(FIRST + from + index))
    const body = JSON.stringify({ users: batch })
    const response = await fetch(`${url}/bulk-import/users`, { method: 'POST', headers, body })
    const { users: staged } = JSON.parse(await response.text())
    if (staged.length !== BATCH_USERS) throw new Error('not all were staged')
  }
  return { milliseconds: performance.now() - startedAt }
}

async function stageByRun({ build, url, apiKey, users, isMeasuringHeap }) {
  const { coreClient, fileJournal, openMigration } = await importEntry(build, './migration')
  const folder = await mkdtemp(join(tmpdir(), 'bench-migration-'))
  const stop = new AbortController()
  let peak = 0
  const look = () => {
    globalThis.gc()
    peak = Math.max(peak, process.memoryUsage().heapUsed)
  }
  let staged = 0
  let startedAt = 0
  let endedAt = 0
  const migration = await openMigration({
    core: coreClient({ baseUrl: url, apiKey }),
    source: {
      name: 'bench',
      records: async function* () {
        yield* records(users)
      },
    },
    journal: await fileJournal(join(folder, 'journal')),
    batchUsers: BATCH_USERS,
    batchBytes: 10_000_000,
    lookUps: 16,
    onProgress({ type, users: inBatch = 0 }) {
      if (isMeasuringHeap) look()
      if (type === 'waiting') stop.abort()
      if (type !== 'batch_staged') return
      // Staging has begun with the first batch.
      if (staged === 0) startedAt = performance.now()
      staged += inBatch
      endedAt = performance.now()
    },
  })
  const { findings } = await migration.run({ signal: stop.signal })
  await migration.close()
  await rm(folder, { recursive: true })
  if (staged !== users) throw new Error(`${staged} were staged: ${JSON.stringify(findings)}`)
  const share = users / (users - BATCH_USERS)
  return { milliseconds: (endedAt - startedAt) * share, peak }
}

process.on('message', async (question) => {
  const work = question.isOurs ? stageByRun : stagePlainly
  process.send(await work(question).catch((error) => ({ fault: String(error.stack ?? error) })))
})
process.on('disconnect', () => process.exit())
