import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { accountsByExternalId, startStandInCore } from '../../support/core/stand-in-core.js'
import { type Ended, type Place, startStep, toldAccounts, toTheEnd, writeProject } from './kit.js'

const USERS = 2000
const KILLS = 50

it(`killed ${KILLS} times at random in one run, each identity has one account`, async () => {
  const core = await startStandInCore({ job: { intervalMs: 500 } })
  onTestFinished(() => core.close())
  const project = await writeProject('random', USERS)
  onTestFinished(() => project.remove())
  const place = { project, coreUrl: core.url, apiKey: core.apiKey }

  let kills = 0
  const step = async (_: Place, name: 'run' | 'correct'): Promise<Ended> => {
    const { child, ended } = await startStep(place, name)
    const over = ended.then(() => true)
    // Most of the first half second is Node's own start.
    const isOver = await Promise.race([over, sleep(400 + Math.random() * 1600, false)])
    if (!isOver && kills < KILLS && child.kill('SIGKILL')) kills += 1
    return await ended
  }
  const all = await toTheEnd(place, step, 3 * KILLS)
  console.log(`${kills} kills, ${all.length} steps`)

  expect(all.at(-1)).toMatchObject({ exitCode: 0 })
  const accounts = await accountsByExternalId(core)
  expect(accounts.size).toBe(USERS)
  expect(await toldAccounts(project)).toEqual(
    new Map(project.externalUserIds.map((id) => [id, accounts.get(id)])),
  )
  const [tables] = await core.query(
    `select (select count(*)::int from accounts) as accounts,
            (select count(*)::int from bulk_import_users) as rows`,
  )
  expect(tables).toEqual({ accounts: USERS, rows: 0 })
})
