import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import {
  deleteAllRows,
  rowsWith,
  type StandInCore,
  startStandInCore,
} from '../../support/core/stand-in-core.js'
import { linesOf, type Project, projectOf, runUntilStalled, userNamed } from './migrate-kit.js'

let core: StandInCore

/** Its job is off, so no row moves. */
beforeAll(async () => {
  core = await startStandInCore()
})
afterAll(() => core.close())
// Rows of one test would be those of others for the next.
afterEach(() => deleteAllRows(core))

const idsOf = (prefix: string) => [1, 2, 3].map((number) => `${prefix}-${number}`)

async function stalledProject(prefix: string): Promise<Project> {
  const project = await projectOf(core, linesOf(...idsOf(prefix).map(userNamed)), core.apiKey)
  const report = await runUntilStalled(core, project)
  expect(report).toMatchObject({ state: 'stalled', counts: { staged: 3 } })
  return project
}

const rowsIn = (prefix: string): number => rowsWith(`${prefix}-`, core).length

it('the rows that a stalled run has left are named by status, and in the report', async () => {
  const project = await stalledProject('named')
  const shown = await project.migrate('status')
  expect(shown).toMatchObject({ exitCode: 6, stderr: '' })
  for (const id of idsOf('named')) {
    expect(shown.stdout).toMatch(new RegExp(`^[0-9a-f-]{36} +${id} +NEW$`, 'm'))
  }
  expect(shown.stdout).toContain('unblock')
  const { stdout } = await project.migrate('status', '--json')
  const [row] = JSON.parse(stdout).rows
  expect(row).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    externalUserId: 'named-1',
    status: 'NEW',
  })
})

it('unblock lists the rows and deletes none without --yes', async () => {
  const project = await stalledProject('listed')
  const listed = await project.migrate('unblock')
  const stderr = 'service-auth: nothing was deleted: add --yes\n'
  expect(listed).toMatchObject({ exitCode: 2, stderr })
  const [heading, columns, ...rows] = listed.stdout.trimEnd().split('\n')
  expect(heading).toBe('--yes deletes these rows and looks up each of their users:')
  expect(columns).toMatch(/^row +external id +status$/)
  expect(rows).toHaveLength(3)
  expect(await rowsIn('listed')).toBe(3)
  expect(await project.migrate('status')).toMatchObject({ exitCode: 6 })
})

it('unblock --yes deletes them, and run imports whoever has no account', async () => {
  const project = await stalledProject('away')
  const client = coreClient({ baseUrl: core.url, apiKey: core.apiKey })
  await client.importUser(userNamed('away-1'))
  await client.importUser({ ...userNamed('away-2'), externalUserId: 'another' })
  const unblocked = await project.migrate('unblock', '--yes')
  expect(unblocked).toMatchObject({ exitCode: 130 })
  expect(unblocked.stdout).toMatch(/failed +1\n +pending +1\n +staged +1\n/)
  expect(await rowsIn('away')).toBe(0)
  const ran = await project.migrate('run')
  expect(ran).toMatchObject({ exitCode: 4 })
  expect(ran.stdout).toMatch(/failed +1\n +reconciled +2\n/)
  const holder = await client.coreIdOf('another')
  expect(ran.stdout).toMatch(new RegExp(`away-2 +failed +E003: .*; held by ${holder}$`, 'm'))
  expect(ran.stdout).not.toContain('@x.example')
})
