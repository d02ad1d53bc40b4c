import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
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

const FILES: Readonly<Record<string, string>> = {
  'policy.json': JSON.stringify(POLICY),
  'users.ndjson': '{ "externalUserId": "ann" }\n',
  'key.txt': 'an-api-key-of-a-test',
}

/** Nothing listens there. */
const REDIS = { REDIS_URL: 'redis://127.0.0.1:1' }

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mistakes-'))
  for (const [name, text] of Object.entries(FILES)) {
    await writeFile(join(folder, name), text, { mode: 0o600 })
  }
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

describe('the command', () => {
  const why = ['--for', '2h', '--reason', 'leaked']
  const deny = (...target: readonly string[]) => ['deny', ...target, ...why]
  const migrate = ['migrate', 'check', '--journal', 'journal']

  it.each<[what: string, argv: readonly string[], line: string, env?: Environment]>([
    [
      'no command',
      [],
      'a command is missing: use one of doctor, deny, allow, denylist, check-store, settle, ' +
        'migrate, before any option; see service-auth --help',
    ],
    [
      'a reason without quotes',
      [...deny('caller', 'billing', '--policy', 'policy.json'), 'key'],
      'too many arguments besides the options: put quotes around a value with spaces, and the ' +
        'name of an option before its value; see service-auth deny --help',
    ],
    [
      'a body in place of its file',
      ['settle', 'abcdefghijklmnopqrstuvwx', '--fence=1', '--done=201', '--body', '{"id":1}'],
      'the --body file does not exist: check its path',
      REDIS,
    ],
    [
      'a core without a scheme',
      [...migrate, '--source=users.ndjson', '--core=core:3567', '--api-key-file=key.txt'],
      '--core must be an absolute https: URL, such as https://core.example; see service-auth ' +
        'migrate --help',
    ],
  ])('with %s', async (_, argv, line, env = {}) => {
    const { stdout, stderr, code } = await run({ argv: [COMMAND, ...argv], env, cwd: folder })
    expect({ stdout, stderr }).toEqual({
      stdout: '',
      stderr: `service-auth: ${line}\n`,
    })
    expect(code).toBe(2)
  })
})

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
      'an issuer without a scheme',
      serviceAuthOf("issuer: 'core.example'"),
      'serviceAuth policy: issuer must be an absolute http(s) URL without query, fragment or ' +
        'trailing slash, such as https://core.example (or give jwksUri)',
    ],
    [
      'one caller instead of a list',
      serviceAuthOf("callers: 'billing'"),
      'serviceAuth policy: callers must be a list of caller names or an object of caller names ' +
        'with their permissions',
    ],
    [
      'milliseconds instead of seconds',
      serviceAuthOf('clockToleranceSeconds: 5000'),
      'serviceAuth policy: clockToleranceSeconds must be a number of seconds from 0 to 60',
    ],
    [
      'a list of permissions',
      `const { requirePermissions } = await import('express-service-auth')
      requirePermissions(['orders:read'])`,
      'requirePermissions: names[0] must be a non-empty string (pass each name as a separate argument)',
    ],
    [
      'a pool as a runner',
      `const { postgresStore } = await import('express-service-auth/postgres')
      const { default: pg } = await import('pg')
      postgresStore(new pg.Pool())`,
      'postgresStore: the runner must be a TransactionRunner, such as fromPg(pool) returns',
    ],
    [
      'the address of Postgres as a pool',
      `const { fromPg } = await import('express-service-auth/postgres')
      fromPg('postgres://localhost')`,
      'fromPg: expected a Pool of pg, such as new Pool({ connectionString })',
    ],
    [
      'the core’s address without a scheme',
      `const { coreClient } = await import('express-service-auth/migration')
      coreClient({ baseUrl: 'core:3567', apiKey: 'a-key' })`,
      'coreClient options: baseUrl must be an absolute https: URL, such as https://core.example',
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
