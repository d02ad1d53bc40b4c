import { readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { rowsOf, startStandInCore } from '../../support/core/stand-in-core.js'
import { until } from '../../support/until.js'
import { expectFailure, type Ran } from '../kit.js'
import { linesOf, type Project, projectOf as projectOn, userNamed } from './migrate-kit.js'

const core = await startStandInCore({ job: { intervalMs: 20 } })
afterAll(() => core.close())

/** So nothing has to be staged, and no job be waited for. */
async function haveAccounts(...externalUserIds: readonly string[]): Promise<void> {
  const client = coreClient({ baseUrl: core.url, apiKey: core.apiKey })
  for (const id of externalUserIds) await client.importUser(userNamed(id))
}

const projectOf = (source: string | Buffer, apiKey = core.apiKey): Promise<Project> =>
  projectOn(core, source, apiKey)

const objectsIn = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

describe('a run', () => {
  it('tells its events with --json, a line each, and the report last', async () => {
    const project = await projectOf(linesOf(userNamed('json-1'), userNamed('json-2')))
    const ran = await project.migrate('run', '--json')
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    const lines = objectsIn(ran.stdout)
    expect(lines.slice(0, -1).map(({ by, type }) => [by, type])).toEqual(
      expect.arrayContaining(
        ['preflight', 'batch_staged', 'waiting', 'reconciling', 'ended'].map((type) => [
          'migration',
          type,
        ]),
      ),
    )
    expect(lines.at(-1)).toMatchObject({
      command: 'migrate',
      ok: true,
      step: 'run',
      state: 'complete',
      counts: { reconciled: 2 },
    })
  })

  it('leaves its reports beside the journal, for its owner alone', async () => {
    await haveAccounts('files-1')
    const project = await projectOf(linesOf(userNamed('files-1'), { externalUserId: 'files-2' }))
    expect(await project.migrate('run')).toMatchObject({ exitCode: 4 })
    const names = ['accounts.ndjson', 'report.json', 'report.ndjson']
    expect(await readdir(project.journal)).toEqual(expect.arrayContaining(names))
    const [accounts, report, needing] = await Promise.all(
      names.map(async (name) => {
        const file = join(project.journal, name)
        expect((await stat(file)).mode & 0o777).toBe(0o600)
        return await readFile(file, 'utf8')
      }),
    )
    expect(objectsIn(accounts ?? '')).toMatchObject([
      { externalUserId: 'files-1', state: 'reconciled' },
    ])
    expect(JSON.parse(report ?? '')).toMatchObject({ state: 'to_correct', identities: 2 })
    expect(objectsIn(needing ?? '')).toMatchObject([
      { externalUserId: 'files-2', line: 2, state: 'invalid' },
    ])
  })

  it('ends with 130 at Ctrl-C, and the next one goes on', async () => {
    const idle = await startStandInCore()
    const project = (await projectOf(linesOf(userNamed('stop-1')))).at(idle.url)
    const before = process.listenerCount('SIGINT')
    const running = project.migrate('run')
    await until('it waits', async () => rowsOf(idle).length > 0)
    expect(process.listenerCount('SIGINT')).toBe(before + 1)
    process.emit('SIGINT')
    const ran = await running
    expect(ran).toMatchObject({ exitCode: 130 })
    expect(ran.stderr).toContain('interrupted: finishing the work in progress')
    expect(ran.stdout).toMatch(/^State +interrupted$/m)
    expect(process.listenerCount('SIGINT')).toBe(before)
    expect(await project.migrate('status')).toMatchObject({ exitCode: 130, stderr: '' })
    await idle.runJob()
    expect(await project.migrate('run')).toMatchObject({ exitCode: 0 })
    await idle.close()
  })
})

/** Expects this exit code, and these words in the last line on standard error; those before it tell of progress. */
function expectStop({ exitCode, stderr }: Ran, code: number, words: string | RegExp): void {
  expect(exitCode).toBe(code)
  const line = stderr.split('\n').at(-2)
  expect(line).toMatch(/^service-auth: /)
  expect(line).toMatch(words)
}

describe('a source that is none', () => {
  it.each([
    ['without an id', linesOf(userNamed('a'), { loginMethods: [] }), 'line 2: '],
    ['with an id twice', linesOf(userNamed('a'), userNamed('a')), 'line 2: '],
    ['cut in mid-line', `${linesOf(userNamed('a'))}{"externalUserId":"b","log`, 'line 2: '],
  ])('is refused in one line when it is %s', async (_, source, message) => {
    const project = await projectOf(source)
    for (const step of ['check', 'run']) {
      const ran = await project.migrate(step)
      expectStop(ran, 2, message)
      expect(ran.stdout).toBe('')
    }
  })
})

describe('what stands in the way', () => {
  it('is told in one line with its exit code, and nothing is lost', async () => {
    await haveAccounts('way-1')
    const project = await projectOf(linesOf(userNamed('way-1')))
    const { migrate: withWrongKey } = await projectOf(
      linesOf(userNamed('way-1')),
      'wrong-key-0123456789',
    )
    const refused =
      /the core answered 401: it refuses the API key; check the key, or the file it is read from$/
    expectStop(await withWrongKey('run'), 3, refused)
    expectStop(await project.at('http://127.0.0.1:2').migrate('run'), 3, 'the core')
    expectStop(await project.at(`${core.url}/elsewhere`).migrate('run'), 3, /core/i)

    // Until something has been sent, the core may still be another.
    expect(await project.migrate('run')).toMatchObject({ exitCode: 0 })
    const other = await project.at('http://127.0.0.1:2').migrate('run')
    expectStop(other, 2, 'the journal is of a core at another address')
  })

  it('a journal that another run has', async () => {
    await haveAccounts('use-1')
    const project = await projectOf(linesOf(userNamed('use-1')))
    const held = await fileJournal(project.journal)
    for (const step of ['run', 'status']) {
      expectFailure(await project.migrate(step), 2, 'another step has the journal open')
    }
    await held.close()
    expect(await project.migrate('run')).toMatchObject({ exitCode: 0 })
  })

  it('a journal that is damaged, and nothing in it is touched', async () => {
    await haveAccounts('damaged-1')
    const project = await projectOf(linesOf(userNamed('damaged-1')))
    expect(await project.migrate('run')).toMatchObject({ exitCode: 0 })
    const file = join(project.journal, 'journal.ndjson')
    const damaged = (await readFile(file, 'utf8')).replace('started', 'startet')
    await writeFile(file, damaged)
    for (const step of ['run', 'status', 'clean']) {
      expectFailure(await project.migrate(step), 2, /journal|damaged/)
    }
    expect(await readFile(file, 'utf8')).toBe(damaged)
  })

  it('a source that has changed since, and one that is gone', async () => {
    await haveAccounts('change-1')
    const project = await projectOf(linesOf(userNamed('change-1'), { externalUserId: 'change-2' }))
    expect(await project.migrate('run')).toMatchObject({ exitCode: 4 })
    await writeFile(project.source, linesOf(userNamed('change-1'), userNamed('change-2')))
    expectStop(await project.migrate('run'), 2, 'the source has changed since the run began')
    await rm(project.source)
    const gone = await project.migrate('run', '--json')
    expectStop(gone, 2, 'the source does not exist: check its path')
    const error = { code: 'bad_source' }
    expect(objectsIn(gone.stdout).at(-1)).toMatchObject({ ok: false, error })
  })

  it('a folder without a journal, and none is made there', async () => {
    const project = await projectOf(linesOf(userNamed('none-1')))
    for (const step of ['status', 'clean', 'reconcile', 'correct']) {
      const ran = await project.migrate(step, ...(step === 'correct' ? ['--again', 'E003'] : []))
      expectFailure(ran, 2, 'the --journal folder contains no journal: check its path')
    }
    expect(await readdir(project.folder)).toEqual(['users.ndjson'])
  })
})

describe('a check', () => {
  it('has the numbers of its findings and of its counts, in text and in JSON', async () => {
    const records = [
      userNamed('sum-0'),
      ...Array.from({ length: 20 }, (_, n) => ({ ...userNamed(`sum-warned-${n}`), colour: 'red' })),
      ...Array.from({ length: 3 }, (_, n) => ({ externalUserId: `sum-invalid-${n}` })),
      { ...userNamed('sum-0'), externalUserId: 'sum-twin' },
    ]
    const project = await projectOf(linesOf(...records))
    const ran = await project.migrate('check')
    expect(ran.exitCode).toBe(1)
    expect(ran.stdout).toMatch(/^State +1 fault, 4 invalid records$/m)
    expect(ran.stdout.match(/^fault .*$/gm)).toHaveLength(1)
    const { counts, findings } = objectsIn((await project.migrate('check', '--json')).stdout).at(
      -1,
    ) as {
      counts: object
      findings: { code: string; records: number }[]
    }
    expect(counts).toMatchObject({ invalid: 4, pending: 21 })
    const sums = new Map<string, number>()
    for (const { code, records: size } of findings) sums.set(code, (sums.get(code) ?? 0) + size)
    expect(Object.fromEntries(sums)).toEqual({
      warning_not_accepted: 20,
      record_invalid: 3,
      login_twice: 1,
    })
    const counted = /^ {2}invalid +4\n {2}pending +21$/m
    expect(ran.stdout).toMatch(counted)
    for (const step of ['run', 'status']) {
      const { stdout } = await project.migrate(step)
      expect(stdout).toMatch(counted)
      expect(stdout.match(/^\d+ .*invalid .*$/gm)).toHaveLength(4)
    }
  })

  it('is no run that could be reconciled', async () => {
    await haveAccounts('early-1')
    const project = await projectOf(linesOf(userNamed('early-1')))
    expect(await project.migrate('check')).toMatchObject({ exitCode: 0 })
    const ran = await project.migrate('reconcile')
    expectFailure(ran, 2, 'nothing has been staged yet: run comes before reconcile')
    expect(await project.migrate('run')).toMatchObject({ exitCode: 0 })
    // Nobody is staged again by it, and no row waits.
    const stderr = 'reconciling: 1 of 1; reconciled 1\n'
    expect(await project.migrate('reconcile')).toMatchObject({ exitCode: 0, stderr })
  })
})

/** What `clean` says without `--yes`. */
const NOT_CONFIRMED = 'service-auth: nothing was deleted: add --yes\n'

describe('clean', () => {
  it('deletes no file but those that the journal knows, by their content', async () => {
    await haveAccounts('own-1')
    const project = await projectOf(linesOf(userNamed('own-1')))
    expect(await project.migrate('run')).toMatchObject({ exitCode: 0 })
    const moved = join(project.folder, 'moved.ndjson')
    await rename(project.source, moved)
    const link = join(project.folder, 'link.ndjson')
    await symlink(moved, link)
    await writeFile(project.source, 'a newer export')
    for (const source of [project.source, link, project.folder]) {
      const ran = await project.migrate('clean', '--yes', '--source', source)
      expectFailure(ran, 2, source)
    }
    expect(await project.migrate('clean', '--yes')).toMatchObject({ exitCode: 2 })
    expect(await readFile(project.source, 'utf8')).toBe('a newer export')
    const ran = await project.migrate('clean', '--yes', '--source', moved)
    expect(ran).toMatchObject({ exitCode: 0 })
    await expect(stat(moved)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('deletes source and corrections when all is complete and it is told to', async () => {
    await haveAccounts('clean-1')
    const project = await projectOf(linesOf(userNamed('clean-1'), { externalUserId: 'clean-2' }))
    expect(await project.migrate('run')).toMatchObject({ exitCode: 4 })
    const early = await project.migrate('clean', '--yes')
    expectStop(early, 4, 'nothing was deleted: the migration is to_correct')
    expect(early.stdout).toBe('')

    const fix = join(project.folder, 'fix.ndjson')
    await writeFile(fix, linesOf({ leaveOut: 'clean-2', reason: 'a test' }))
    expect(await project.migrate('correct', '--corrections', fix)).toMatchObject({ exitCode: 0 })
    const listed = await project.migrate('clean')
    expect(listed.stdout).toContain(`  ${project.source}\n  ${fix}\n`)
    expect(listed).toMatchObject({ exitCode: 2, stderr: NOT_CONFIRMED })
    expect((await readdir(project.folder)).sort()).toEqual([
      'fix.ndjson',
      'journal',
      'users.ndjson',
    ])

    expect(await project.migrate('clean', '--yes')).toMatchObject({ exitCode: 0 })
    expect(await readdir(project.folder)).toEqual(['journal'])
    expect((await project.migrate('clean', '--yes')).stdout).toBe(
      'There is nothing left to delete.\n',
    )

    const accounts = await readFile(join(project.journal, 'accounts.ndjson'), 'utf8')
    const status = await project.migrate('status')
    expect(status).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await readFile(join(project.journal, 'accounts.ndjson'), 'utf8')).toBe(accounts)
  })
})
