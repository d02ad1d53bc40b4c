import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { person } from '../../../core/people.js'
import { run } from '../../../example-app/run.js'
import {
  accountsByExternalId,
  databaseFolder,
  removeDatabaseFolder,
  startStandInCore,
} from '../stand-in-core.js'

const API_KEY = 'the-key-of-the-killed-core'

let folder: string
let other: string

beforeAll(async () => {
  folder = await databaseFolder()
  other = await mkdtemp(join(tmpdir(), 'example-app-'))
  await writeFile(join(other, 'letter.txt'), 'not a database')
})
afterAll(async () => {
  await removeDatabaseFolder(folder)
  await rm(other, { recursive: true })
})

function start(env: Record<string, string>) {
  return run('../test/support/core/identity-core/main.ts', [], {
    IDENTITY_CORE_PORT: '0',
    ISSUER_PORT: '0',
    IDENTITY_CORE_API_KEY: API_KEY,
    IDENTITY_CORE_KEYS_FILE: join(folder, '..', 'keys.json'),
    IDENTITY_CORE_DATABASE: folder,
    ...env,
  })
}

async function startToServe(env: Record<string, string>) {
  const running = await start(env)
  const [, url = ''] = /identity-core: (\S+)/.exec(await running.printed('http://')) ?? []
  const call = async (path: string, body?: object) => {
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${url}${path}`, { headers: { 'api-key': API_KEY }, ...sent })
    return JSON.parse(await response.text())
  }
  return { ...running, call }
}

const NO_JOB = { BULK_MIGRATION_CRON_ENABLED: 'false' }
/** 20 rows cut into three. */
const USERS_OF_CHUNK = 7
const CRASH = { BULK_IMPORT_CRASH: 'before-delete', BULK_MIGRATION_PARALLELISM: '3' }

it('loses nothing that it has acknowledged when it is killed, and nobody else opens it', async () => {
  const imported = person()
  const staged = Array.from({ length: 20 }, () => person())
  const first = await startToServe(NO_JOB)
  await first.call('/bulk-import/import', imported)
  await first.call('/bulk-import/users', { users: staged })
  const second = await (await start(NO_JOB)).finished
  expect(second).toEqual({
    code: 1,
    stdout: '',
    stderr: `identity-core: the database ${folder} is in use by another core\n`,
  })
  first.child.kill('SIGKILL')
  await first.finished

  // Its job runs at once, and ends it between the accounts of the first chunk and their rows.
  const crashing = await start(CRASH)
  await crashing.finished
  expect(crashing.child.signalCode).toBe('SIGKILL')

  const last = await startStandInCore({ database: folder })
  const rows = await last.query<{ status: string }>('select status from bulk_import_users')
  expect(rows).toEqual(staged.map(() => ({ status: 'PROCESSING' })))
  const accounts = await accountsByExternalId(last)
  expect(accounts.has(imported.externalUserId)).toBe(true)
  expect(accounts.size).toBe(1 + USERS_OF_CHUNK)
  await last.close()
})

it.each([
  [{ IDENTITY_CORE_FEATURES: 'everything' }, 'IDENTITY_CORE_FEATURES must be of account_linking'],
  [{ BULK_MIGRATION_PARALLELISM: '0' }, 'BULK_MIGRATION_PARALLELISM must be a whole number from 1'],
  [{ BULK_IMPORT_CRASH: 'now' }, 'BULK_IMPORT_CRASH must be before-delete'],
])('ends with one line for %j', async (env, line) => {
  await expectLine(env, line)
})

it('ends with one line for a folder of something else', async () => {
  await expectLine(
    { IDENTITY_CORE_DATABASE: other },
    "holds something else than the core's database",
  )
})

async function expectLine(env: Record<string, string>, line: string): Promise<void> {
  const { code, stderr } = await (await start(env)).finished
  expect({ code, lines: stderr.split('\n').length }).toEqual({ code: 1, lines: 2 })
  expect(stderr).toContain(line)
}
