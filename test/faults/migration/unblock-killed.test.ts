import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { linesOf, runUntilStalled, userNamed } from '../../cli/migrate/migrate-kit.js'
import { accountsByExternalId, rowsOf, startStandInCore } from '../../support/core/stand-in-core.js'
import { type Place, runStep, writeProject } from './kit.js'

const IDS = ['killed-0', 'killed-1', 'killed-2', 'killed-3']
const TO_CORRECT = 4

/** A run that has stalled; since then one user has an account, and another account the login of one. */
async function stalledPlace(): Promise<Place> {
  const core = await startStandInCore()
  onTestFinished(() => core.close())
  const project = await writeProject('killed', IDS.length)
  const source = join(project.folder, 'users.ndjson')
  await writeFile(source, linesOf(...IDS.map(userNamed)))
  const journal = join(project.folder, 'journal')
  expect(await runUntilStalled(core, { source, journal })).toMatchObject({ state: 'stalled' })
  const client = coreClient({ baseUrl: core.url, apiKey: core.apiKey })
  await client.importUser(userNamed('killed-1'))
  await client.importUser({ ...userNamed('killed-2'), externalUserId: 'another' })
  const place = { project, coreUrl: core.url, apiKey: core.apiKey }
  onTestFinished(async () => {
    expect([...(await accountsByExternalId(core)).keys()].sort()).toEqual([
      'another',
      'killed-0',
      'killed-1',
      'killed-3',
    ])
    expect(rowsOf(core)).toEqual([])
  })
  return place
}

it.for(['before', 'after'])('an `unblock` killed %s each entry goes on', async (moment) => {
  let number = 0
  for (let hasDied = true; hasDied; ) {
    number += 1
    const place = await stalledPlace()
    const first = await runStep(place, 'unblock', { dieAt: `${number}:${moment}` })
    hasDied = first.exitCode === null
    // Nothing is left to do for it when it was killed behind its last entry.
    if (hasDied) await runStep(place, 'unblock')
    expect(await runStep(place, 'run')).toMatchObject({ exitCode: TO_CORRECT })
  }
  expect(number).toBeGreaterThan(3)
})
