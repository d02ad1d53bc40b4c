import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'

/** Mistakes of a hurried person. Each ends with one line: what is wrong, and what to type instead. */

const PACKAGE = inject('packed').folder
const { bin, exports } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'))
const COMMAND = join(PACKAGE, bin['service-auth'])

const POLICY = {
  issuer: 'https://core.example',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
}

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mistakes-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

type Environment = Readonly<Record<string, string>>

interface Run {
  readonly argv: readonly string[]
  readonly env?: Environment
  readonly cwd?: string
  readonly node?: string
}

/** Runs Node without input, in an environment of its own; resolves with what it ended with. */
async function run({ argv, env = {}, cwd = PACKAGE, node = process.execPath }: Run) {
  const { PATH = '', HOME = '', TMPDIR = '' } = process.env
  const options = { cwd, env: { PATH, HOME, TMPDIR, ...env }, timeout: 60_000 }
  const running = promisify(execFile)(node, [...argv], options)
  running.child.stdin?.end()
  const ended = await running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
  return ended as { readonly code: unknown; readonly stdout: string; readonly stderr: string }
}

describe('a program with', () => {
  const withOneLine = (code: string): string => `
    try { ${code} } catch (error) {
      console.error(error.message)
      process.exit(1)
    }`

  const serviceAuthOf = (change: string): string => `
    const { serviceAuth } = await import('express-service-auth')
    serviceAuth({ ...${JSON.stringify(POLICY)}, ${change} })`

  it.each<[what: string, code: string, line: string]>([
    [
      'an issuer from a variable that is not set',
      serviceAuthOf("issuer: process.env['ISUER']"),
      'serviceAuth policy: issuer must be a non-empty string',
    ],
    [
      'a list of permissions',
      `const { requirePermissions } = await import('express-service-auth')
      requirePermissions(['orders:read'])`,
      "requirePermissions: names[0] must be a non-empty string: pass each name as a separate argument, as in requirePermissions('orders:read')",
    ],
    [
      'a pool as a runner',
      `const { postgresStore } = await import('express-service-auth/postgres')
      const { default: pg } = await import('pg')
      postgresStore(new pg.Pool())`,
      'postgresStore: the runner must be a TransactionRunner, such as fromPg(pool) returns',
    ],
    [
      'the path of a source instead of the source',
      `const { coreClient, fileJournal, openMigration } = await import('express-service-auth/migration')
      const core = coreClient({ baseUrl: 'https://core.example', apiKey: 'a-key' })
      const journal = await fileJournal(process.env['JOURNAL'])
      await openMigration({ core, journal, source: 'users.ndjson' })`,
      'openMigration options: source must be { file } or { name, records }',
    ],
  ])('%s', async (_, code, line) => {
    const argv = ['--input-type=module', '--eval', withOneLine(code)]
    const env = { JOURNAL: join(folder, 'opened') }
    expect(await run({ argv, env })).toEqual({ code: 1, stdout: '', stderr: `${line}\n` })
  })
})

describe('on Node 18', () => {
  const LINE = /^Node 18\.\d+\.\d+ is too old: install Node 20\.19 or later\n$/
  const entryPoints = Object.keys(exports).filter((name) => exports[name].types !== undefined)
  let node: string

  beforeAll(async () => {
    const print = ['--', 'node', '--print', 'process.execPath']
    const npx = ['--yes', '--prefer-offline', '--package', 'node@18', ...print]
    node = (await promisify(execFile)('npx', npx)).stdout.trim()
  })

  it('the command ends with one line', async () => {
    const { stdout, stderr, code } = await run({ argv: [COMMAND, '--version'], node })
    expect({ stdout, code }).toEqual({ stdout: '', code: 2 })
    expect(stderr.replace('service-auth: ', '')).toMatch(LINE)
  })

  it.each(entryPoints)('the import of the entry point %s fails with one line', async (name) => {
    const specifier = `express-service-auth${name.slice(1)}`
    const code = `await import('${specifier}').catch(({ message }) => console.error(message))`
    const { stderr } = await run({ argv: ['--input-type=module', '--eval', code], node })
    expect(stderr.replace('express-service-auth: ', '')).toMatch(LINE)
  })
})
