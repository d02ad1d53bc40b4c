import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { type StandInCore, startStandInCore } from '../../support/core/stand-in-core.js'
import { until } from '../../support/until.js'
import { startChild } from '../kit.js'
import { linesOf, type Project, projectOf, userNamed } from './migrate-kit.js'

let core: StandInCore

/** Its job is off, so that a run waits for it until it is killed. */
beforeAll(async () => {
  core = await startStandInCore()
})
afterAll(() => core.close())

/** A run in a process of its own, which has staged all and waits. */
async function waitingRun(project: Project) {
  const run = await startChild(project.argv('run'), { stdin: core.apiKey })
  let told = ''
  run.child.stderr.on('data', (text: string) => {
    told += text
  })
  await until('the run waits for the job', async () => told.includes('waiting: 0 of 2'))
  return run
}

it('status tells where a run stands, also while it is under way', async () => {
  const source = linesOf(userNamed('beside-1'), userNamed('beside-2'))
  const project = await projectOf(core, source, core.apiKey)
  const run = await waitingRun(project)
  const files = await readdir(project.journal)
  expect(files).not.toContain('report.json')

  const beside = await project.migrate('status')
  expect(beside).toMatchObject({ exitCode: 130, stderr: '' })
  const [state, begun, ...counts] = beside.stdout.split('\n')
  expect(state).toBe('State       another step is running')
  expect(begun).toMatch(/^Started {5}.+ before this report$/)
  expect(counts).toEqual(['Identities  2', '  staged    2', ''])
  expect((await project.migrate('status', '--json')).json()).toMatchObject({
    step: 'status',
    underWay: true,
    state: 'interrupted',
    counts: { staged: 2 },
    advice: [],
  })
  expect(await readdir(project.journal)).toEqual(files)

  run.child.kill('SIGKILL')
  await run.ended
  const after = await project.migrate('status')
  expect(after).toMatchObject({ exitCode: 130, stderr: '' })
  expect(after.stdout).toContain('State       interrupted')
  expect(await readdir(project.journal)).toContain('report.json')
})

it('status beside a step tells nothing of how the one before has ended', async () => {
  const project = await projectOf(
    core,
    linesOf(userNamed('ended-1')),
    'a-key-of-another-core-01234',
  )
  expect(await project.migrate('run')).toMatchObject({ exitCode: 3 })
  expect((await project.migrate('status', '--json')).json()).toMatchObject({ state: 'core_fault' })
  const held = await fileJournal(project.journal)
  const file = join(project.journal, 'journal.ndjson')
  const bytes = await readFile(file)
  expect((await project.migrate('status', '--json')).json()).toMatchObject({
    underWay: true,
    state: 'interrupted',
    findings: [],
    advice: [],
  })
  expect(await readFile(file)).toEqual(bytes)
  await held.close()
})

it('status beside a step that has not begun a run says so', async () => {
  const project = await projectOf(core, linesOf(userNamed('early-1')), core.apiKey)
  const held = await fileJournal(project.journal)
  const status = await project.migrate('status')
  expect(status).toMatchObject({ exitCode: 2, stdout: '' })
  expect(status.stderr).toContain('another step has the journal open, and no run has started yet')
  await held.close()
})
