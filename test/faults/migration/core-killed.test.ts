import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { accountsByExternalId, startStandInCore } from '../../support/core/stand-in-core.js'
import { freePort } from '../../support/network/free-port.js'
import { compile } from '../../support/process/compile.js'
import { removeTemporaryFolder, temporaryFolder } from '../../support/process/temporary-folder.js'
import { toldAccounts, toTheEnd, unharmed, writeProject } from './kit.js'

const CORE_API_KEY = 'the-key-of-a-core-that-dies'
const USERS = 2000
const KILLS = 20

it(`the core killed ${KILLS} times at random in one run, each identity has one account`, async () => {
  const database = await temporaryFolder('esa-core-')
  onTestFinished(() => removeTemporaryFolder(database))
  const core = await startKilledCore(database)
  onTestFinished(() => core.stop())
  const project = await writeProject('core-killed', USERS)

  const place = { project, coreUrl: core.url, apiKey: CORE_API_KEY }
  const all = await toTheEnd(place, unharmed, 5 * KILLS)
  console.log(`${core.kills()} kills, ${all.length} steps`)
  await core.stop()
  expect(core.kills()).toBeGreaterThan(KILLS / 2)

  const tables = await startStandInCore({ database })
  onTestFinished(() => tables.close())
  const accounts = await accountsByExternalId(tables)
  expect(accounts.size).toBe(USERS)
  expect(await toldAccounts(project)).toEqual(
    new Map(project.externalUserIds.map((id) => [id, accounts.get(id)])),
  )
  const { accounts: made, rows } = tables.tables
  expect({ accounts: made.size, rows: rows.size }).toEqual({ accounts: USERS, rows: 0 })
})

interface KilledCore {
  readonly url: string
  kills(): number
  stop(): Promise<void>
}

/** A core in a process of its own, which is killed at random and started again on the same port. */
async function startKilledCore(database: string): Promise<KilledCore> {
  const port = await freePort()
  const program = await compile(
    new URL('../../support/core/identity-core/main.ts', import.meta.url),
  )
  let kills = 0
  let isOver = false
  let child: ChildProcess | undefined

  const env = {
    ...process.env,
    IDENTITY_CORE_PORT: String(port),
    ISSUER_PORT: '0',
    IDENTITY_CORE_API_KEY: CORE_API_KEY,
    IDENTITY_CORE_DATABASE: database,
    BULK_IMPORT_INTERVAL_MS: '300',
  }
  const live = async (): Promise<void> => {
    while (!isOver) {
      child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      const gone = once(child, 'exit')
      await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), gone])
      if (kills < KILLS) {
        await Promise.race([sleep(300 + Math.random() * 2500), gone])
        if (!isOver && child.kill('SIGKILL')) kills += 1
      }
      await gone
    }
  }
  const living = live()
  return {
    url: `http://127.0.0.1:${port}`,
    kills: () => kills,
    async stop() {
      isOver = true
      child?.kill('SIGKILL')
      await living
    },
  }
}
