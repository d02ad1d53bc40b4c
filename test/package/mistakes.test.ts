import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres/postgres.js'

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
const policyWith = (change: object): string => JSON.stringify({ ...POLICY, ...change })

const FILES: Readonly<Record<string, string>> = {
  'policy.json': JSON.stringify(POLICY),
  'comma.json': JSON.stringify(POLICY, null, 2).replace(/\n}$/, ',\n}'),
  'scheme.json': policyWith({ issuer: 'core.example' }),
  'misspelt.json': policyWith({ audience: undefined, audiance: 'orders' }),
  'redis.json': '{ "url": "redis://localhost" }',
  'users.ndjson': '{ "externalUserId": "ann" }\n',
  'array.json': '[{ "externalUserId": "ann" }]\n',
  'users.csv': 'externalUserId,email\nann,ann@a.example\n',
  'key.txt': 'an-api-key-of-a-test',
  'open-key.txt': 'an-api-key-of-a-test',
}
const OPEN_TO_OTHERS = ['redis.json', 'open-key.txt']

/** Nothing listens there. */
const REDIS = { REDIS_URL: 'redis://127.0.0.1:1' }

let folder: string
let postgres: PostgresServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mistakes-'))
  for (const [name, text] of Object.entries(FILES)) {
    await writeFile(join(folder, name), text)
    await chmod(join(folder, name), OPEN_TO_OTHERS.includes(name) ? 0o644 : 0o600)
  }
  postgres = await startPostgres()
})
afterAll(async () => {
  await postgres?.stop()
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
  const core = ['--core', 'https://core.example', '--api-key-file', 'key.txt']
  const migrate = ['migrate', 'check', '--journal', 'journal']

  it.each<[what: string, argv: readonly string[], line: string, env?: Environment]>([
    [
      'no command',
      [],
      'a command is missing: use one of doctor, deny, allow, denylist, check-store, settle, ' +
        'migrate; see service-auth --help',
    ],
    [
      'a misspelt command',
      ['doctr', '--policy', 'policy.json'],
      'unknown command (argument 1): use one of doctor, deny, allow, denylist, check-store, ' +
        'settle, migrate; see service-auth --help',
    ],
    [
      'deny without a kind',
      ['deny', 'billing'],
      'the first argument must be caller, key, token or issued-before, such as caller NAME; see ' +
        'service-auth deny --help',
    ],
    [
      'deny without a name',
      deny('caller'),
      'caller needs a value: write caller NAME; see service-auth deny --help',
    ],
    [
      'deny without a reason',
      ['deny', 'caller', 'billing', '--policy', 'policy.json', '--for', '2h'],
      '--reason is missing: add --reason TEXT; see service-auth deny --help',
    ],
    [
      'a reason without quotes',
      [...deny('caller', 'billing', '--policy', 'policy.json'), 'key'],
      'too many arguments besides the options: 3, but the command accepts at most 2: put quotes ' +
        'around a value with spaces, and the name of an option before its value; see ' +
        'service-auth deny --help',
    ],
    [
      'a time in words',
      ['deny', 'caller', 'billing', '--policy=policy.json', '--reason=x', '--for', '2 hours'],
      '--for must be a number and a unit, such as 250ms, 5s, 15m, 2h or 7d; see service-auth deny ' +
        '--help',
      REDIS,
    ],
    [
      'one hyphen',
      deny('caller', 'billing', '-policy', 'policy.json'),
      'unknown option (argument 4): options begin with two hyphens, such as --json; see ' +
        'service-auth deny --help',
    ],
    [
      'a misspelt option',
      deny('caller', 'billing', '--polcy', 'policy.json'),
      'unknown option (argument 4): use --policy; see service-auth deny --help',
    ],
    [
      'a caller that the policy does not have',
      deny('caller', 'biling', '--policy', 'policy.json'),
      'the policy does not approve a caller of this name; --unlisted denies it anyway; see ' +
        'service-auth deny --help',
      REDIS,
    ],
    [
      'a policy with a trailing comma',
      ['doctor', '--policy', 'comma.json'],
      'the --policy file is not JSON (line 9, column 1): look for a trailing comma, a comment or ' +
        'single quotes',
    ],
    [
      'a policy without a scheme in its issuer',
      ['doctor', '--policy', 'scheme.json'],
      'serviceAuth policy: issuer must be an absolute http(s) URL without query, fragment or ' +
        'trailing slash, such as https://core.example (or give jwksUri)',
    ],
    [
      'a misspelt member of a policy',
      ['doctor', '--policy', 'misspelt.json'],
      'serviceAuth policy: audience must be a non-empty string; audiance is not an option (use ' +
        'audience)',
    ],
    [
      'the path of a policy that is not there',
      ['doctor', '--policy', 'polic.json'],
      'the --policy file does not exist: check its path',
    ],
    [
      'a token as an argument',
      ['doctor', '--policy', 'policy.json', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln'],
      'do not pass a token as an argument: other users can see it in the process list. Pass it on ' +
        'standard input; see service-auth doctor --help',
    ],
    [
      'an empty standard input',
      ['doctor', '--policy', 'policy.json', '--token-stdin'],
      'standard input is empty; it must contain the token',
    ],
    [
      'no address of Redis',
      ['denylist'],
      'the address of Redis is missing: set REDIS_URL, such as redis://localhost:6379, or use ' +
        '--redis FILE',
    ],
    [
      'one slash too few in REDIS_URL',
      ['denylist'],
      'REDIS_URL must be a redis: or rediss: URL with a host, and a number as database if there ' +
        'is one, such as redis://localhost:6379/0',
      { REDIS_URL: 'redis:/localhost' },
    ],
    [
      'a Redis that does not run',
      ['denylist'],
      'the denylist cannot be read: Redis is unreachable: connect ECONNREFUSED 127.0.0.1:1',
      REDIS,
    ],
    [
      'the address of Redis as an argument',
      ['check-store', 'redis://localhost'],
      'do not pass a Redis URL or a URL with a password as an argument: other users can see it in ' +
        'the process list. Set REDIS_URL or use a file with --redis; see service-auth check-store ' +
        '--help',
    ],
    [
      'a --redis file that others can read',
      ['denylist', '--redis', 'redis.json'],
      'other users can read or change the --redis file: run chmod 600 on it',
    ],
    [
      'a key where the record belongs',
      ['settle', 'order-42'],
      'the name of a record has 24 characters of A-Za-z0-9_-, as in the events; pass a key on ' +
        'standard input with --key-stdin; see service-auth settle --help',
      REDIS,
    ],
    [
      'a record to free without its fence',
      ['settle', 'abcdefghijklmnopqrstuvwx', '--free'],
      '--free needs --fence N: settle with the record alone shows it; see service-auth settle ' +
        '--help',
      REDIS,
    ],
    [
      'a body in place of its file',
      ['settle', 'abcdefghijklmnopqrstuvwx', '--fence=1', '--done=201', '--body', '{"id":1}'],
      'the --body file does not exist: check its path',
      REDIS,
    ],
    [
      'no step of a migration',
      ['migrate', '--source', 'users.ndjson'],
      'a step is missing: use one of check, run, status, correct, reconcile, unblock, clean; see ' +
        'service-auth migrate --help',
    ],
    [
      'an API key that others can read',
      [...migrate, '--source=users.ndjson', '--core=https://a', '--api-key-file=open-key.txt'],
      'other users can read or change the --api-key-file file: run chmod 600 on it',
    ],
    [
      'a core without a scheme',
      [...migrate, '--source=users.ndjson', '--core=core:3567', '--api-key-file=key.txt'],
      '--core must be an absolute https: URL, such as https://core.example; see service-auth ' +
        'migrate --help',
    ],
    [
      'a journal that is not there',
      ['migrate', 'status', '--journal', 'jurnal'],
      'the --journal folder contains no journal: check its path',
    ],
    [
      'a file as the journal',
      ['migrate', 'check', '--source=users.ndjson', '--journal=users.csv', ...core],
      'the journal is a folder, and its path leads to a file: name another one',
    ],
    [
      'a source that is one array',
      [...migrate, '--source', 'array.json', ...core],
      'line 1: here is an array: NDJSON has one record a line, without brackets around them ' +
        '("FOLDER/array.json")',
    ],
    [
      'a source that is a table',
      [...migrate, '--source', 'users.csv', ...core],
      'line 1: this is not JSON: each line must be one whole record ("FOLDER/users.csv")',
    ],
  ])('with %s', async (_, argv, line, env = {}) => {
    const { stdout, stderr, code } = await run({ argv: [COMMAND, ...argv], env, cwd: folder })
    expect({ stdout, stderr }).toEqual({
      stdout: '',
      stderr: `service-auth: ${line.replace('FOLDER', folder)}\n`,
    })
    expect(code).toBe(line.includes('ECONNREFUSED') ? 3 : 2)
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
      'a misspelt option',
      serviceAuthOf("apiBasepath: '/auth'"),
      'serviceAuth policy: apiBasepath is not an option (use apiBasePath)',
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
      'requirePermissions: names[0] must be a non-empty string (each name is an argument of its own)',
    ],
    [
      'the address of Redis as a store',
      `const { redisStore } = await import('express-service-auth/redis')
      redisStore('redis://localhost')`,
      'redisStore: redis must be a Redis or Cluster client of ioredis 5 or 6 or of iovalkey 0.3 or 0.4, such as new Redis(url), or what createClient or createCluster of redis (node-redis) 5 or 6 returns',
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
      'a Postgres without the tables',
      `const { fromPg, postgresStore } = await import('express-service-auth/postgres')
      const { default: pg } = await import('pg')
      await postgresStore(fromPg(new pg.Pool({ connectionString: process.env['DATABASE_URL'] }))).check()`,
      'Postgres must not be used: the schema service_auth is missing: run the SQL of migration()',
    ],
    [
      'a key as text',
      `const { encryptedStore, memoryStore } = await import('express-service-auth')
      encryptedStore(memoryStore(), { keys: { a: 'secret' }, current: 'a' })`,
      "encryptedStore options: keys.a must be a Uint8Array of 32 bytes, such as Buffer.from(text, 'base64url')",
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
    const env = { DATABASE_URL: postgres.url, JOURNAL: join(folder, 'opened') }
    expect(await run({ argv, env })).toEqual({ code: 1, stdout: '', stderr: `${line}\n` })
  })
})

describe('the example, started with', () => {
  it.each<[what: string, file: string, env: Environment, line: string]>([
    [
      'a word as a port',
      'orders/main.ts',
      { ORDERS_PORT: 'http' },
      'orders: ORDERS_PORT must be a whole number from 0 to 65535',
    ],
    [
      'a core without a scheme',
      'billing/main.ts',
      { IDENTITY_CORE_URL: 'localhost:3567' },
      'billing: IDENTITY_CORE_URL must be an address such as http://127.0.0.1:3567, without a path',
    ],
    [
      'one slash too few in REDIS_URL',
      'orders/main.ts',
      { REDIS_URL: 'redis:/localhost' },
      'orders: REDIS_URL must be an address such as redis://localhost:6379/0',
    ],
    [
      'no DATABASE_URL',
      'migrate.ts',
      {},
      'migrate: set DATABASE_URL, such as postgres://localhost:5432/orders',
    ],
  ])('%s', async (_, file, env, line) => {
    const argv = ['--import', 'tsx', join('example-app', file)]
    const TSX_TSCONFIG_PATH = join(PACKAGE, 'example-app/tsconfig.json')
    const ended = await run({ argv, env: { TSX_TSCONFIG_PATH, ...env } })
    expect(ended).toEqual({ code: 1, stdout: '', stderr: `${line}\n` })
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
