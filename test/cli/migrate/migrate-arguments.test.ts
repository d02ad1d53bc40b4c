import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMON_OPTIONS, optionNames } from '../../../src/cli/frame/arguments.js'
import { migrateWith } from '../../../src/cli/migrate/migrate.js'
import { MIGRATE_OPTIONS } from '../../../src/cli/migrate/migrate-options.js'
import type { CoreClientOptions } from '../../../src/migration/core/open-core-client.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { expectFailure, runHere, temporaryFile, temporaryFolder } from '../kit.js'

const KEY = 'migration-key-0123456789'
knowSecret('an API key', KEY)

/** Runs the command up to the place where it would ask for the core. */
async function reaching(argv: readonly string[], stdin = '') {
  const reached: CoreClientOptions[] = []
  const never = () => {
    throw new Error('not asked for')
  }
  const command = migrateWith({
    coreClient(core) {
      reached.push(core)
      throw new TypeError('coreClient: this is as far as it goes')
    },
    fileJournal: never,
  })
  const ran = await runHere(['migrate', ...argv], { stdin, commands: [command] })
  return { ...ran, core: reached[0] }
}

const WHERE = ['--core', 'https://core.example', '--source', 'users.ndjson', '--journal', 'journal']
const RUN = ['run', '--api-key-stdin', ...WHERE]

it('names its options in a message of the package', async () => {
  const journal = join(await temporaryFolder(), 'journal')
  const where = ['--core', 'http://core.example', '--source', 'users.ndjson', '--journal', journal]
  const ran = await runHere(['migrate', 'check', '--api-key-stdin', ...where], { stdin: KEY })
  const words =
    /--core must be https: .+ or with --allow-insecure-http\); see service-auth migrate --help$/m
  expectFailure(ran, 2, words)
})

describe('the command line', () => {
  it.each([
    [
      'no step',
      [],
      'a step is missing: use one of check, run, status, correct, reconcile, unblock, ',
    ],
    ['an unknown step', ['rum', ...WHERE], 'unknown step: use one of check'],
    ['two steps', ['run', 'run'], 'too many arguments besides the options: put quotes'],
    ['an unknown option', ['run', '--sauce', 'x'], 'unknown option;'],
    ['no core', ['run', '--source', 'a', '--journal', 'b'], '--core is missing'],
    ['no journal of status', ['status'], '--journal is missing'],
    ['no key', ['run', ...WHERE], 'use either --api-key-file FILE or --api-key-stdin'],
    [
      'two keys',
      [...RUN, '--api-key-file', 'a'],
      'use either --api-key-file FILE or --api-key-stdin',
    ],
    ['no corrections', ['correct', ...WHERE], 'use either --corrections FILE or --again CODE...'],
    ['a code that is none', ['correct', '--again', 'E19', ...WHERE], '--again must be a code'],
    ['a word that is none', ['correct', '--again', 'failed', ...WHERE], '--again must be a code'],
    ['corrections of run', [...RUN, '--corrections', 'a'], '--corrections is for correct only'],
    ['--yes of run', [...RUN, '--yes'], '--yes is for unblock and clean only'],
    [
      'a large number',
      [...RUN, '--batch-users', '10001'],
      'must be a whole number from 1 to 10000',
    ],
    ['no number', [...RUN, '--settle-seconds', '1m'], 'must be a whole number from 0 to 600'],
    ['a warning', [...RUN, '--accept-warnings', 'no_primari'], '--accept-warnings must be one of'],
  ])('is refused with %s', async (_, argv, message) => {
    const { core, ...ran } = await reaching(argv, KEY)
    expectFailure(ran, 2, message)
    expect(ran.stderr).toMatch(/; see service-auth migrate --help$/m)
    expect(core).toBeUndefined()
  })

  it.each(['role_missing', 'E034', 'login_taken'])(
    'takes %s as a code for --again, and looks for the journal',
    async (code) => {
      const ran = await reaching(['correct', '--again', code, '--api-key-stdin', ...WHERE], KEY)
      expectFailure(ran, 2, 'the --journal folder contains no journal')
    },
  )

  it('says in its help what each exit code means', async () => {
    const { exitCode, stdout } = await reaching(['--help'])
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^ {2}4 {4}records need corrections; see the report$/m)
    expect(stdout).toMatch(/^ {2}130 {2}interrupted$/m)
  })
})

it('the help shows each option once, with the steps that have it', async () => {
  const { stdout } = await reaching(['--help'])
  const names = Object.values({ ...MIGRATE_OPTIONS, COMMON_OPTIONS }).flatMap(optionNames)
  for (const name of names) {
    expect([name, stdout.split('\n').filter((line) => line.startsWith(`  --${name} `))]).toEqual([
      name,
      [expect.any(String)],
    ])
  }
  const lines = stdout.split('\n').map((line) => line.split(/ {2,}/).filter(Boolean)[0] ?? '')
  const [from, to] = [lines.indexOf('correct, exactly one of:'), lines.indexOf('Common options:')]
  expect(lines.slice(from, to)).toEqual([
    'correct, exactly one of:',
    '--corrections FILE',
    '--again CODE...',
    '',
    'unblock and clean:',
    '--yes',
    '',
  ])
})

describe('the API key', () => {
  it('comes from a file that only its owner can read', async () => {
    const file = await temporaryFile(`${KEY}\n`)
    const times = ['--timeout-ms', '500', '--stage-timeout-ms', '900', '--allow-insecure-http']
    const { core } = await reaching(['run', '--api-key-file', file, ...WHERE, ...times])
    expect(core).toEqual({
      baseUrl: 'https://core.example',
      apiKey: KEY,
      allowInsecureHttp: true,
      timeoutMs: 500,
      stageTimeoutMs: 900,
    })
  })

  it('comes from standard input', async () => {
    expect((await reaching(RUN, `${KEY}\n`)).core).toMatchObject({ apiKey: KEY })
  })

  it.each(['', '\n', `${KEY} ${KEY}`, `${KEY}\n${KEY}`, `${KEY}\u00a0`])(
    'is refused when it is none: %j',
    async (text) => {
      const file = await temporaryFile(text)
      const fromFile = await reaching(['run', '--api-key-file', file, ...WHERE])
      const fromInput = await reaching(RUN, text)
      for (const { core, ...ran } of [fromFile, fromInput]) {
        expectFailure(ran, 2, /API key|standard input/)
        expect(core).toBeUndefined()
      }
    },
  )
})
