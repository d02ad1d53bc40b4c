import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { compileCommand } from '../../cli/kit.js'
import { compile } from '../../support/process/compile.js'
import { knowSecret, recordOutput } from '../../support/secret-search/index.js'

/** A migration on disk: its source, its corrections and its journal. */
export interface Project {
  readonly folder: string
  readonly externalUserIds: readonly string[]
}

/** A user of whom nothing is to be corrected. */
const userNamed = (externalUserId: string): ImportUser => ({
  externalUserId,
  userMetadata: { from: 'legacy' },
  loginMethods: [
    {
      recipeId: 'emailpassword',
      email: `${externalUserId}@users.example`,
      passwordHash: '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
      hashingAlgorithm: 'bcrypt',
      isPrimary: true,
      isVerified: true,
    },
  ],
})

/** A role that no core has. */
const WITHOUT_ROLE: Partial<ImportUser> = {
  userRoles: [{ role: ' ', tenantIds: ['public'] }],
}

/** The core takes both methods, and its job fails. */
function withRepeatedMethod(user: ImportUser): ImportUser {
  const [method] = user.loginMethods
  if (method === undefined) throw new Error('a user without login methods')
  return { ...user, loginMethods: [method, { ...method, isPrimary: false }] }
}

/**
 * A source of so many users. The last of them is no user that the core takes, the one before it fails
 * in its job, the one before that has the e-mail address of the first: `fix.ndjson` corrects the three.
 */
export async function writeProject(prefix: string, count: number): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-migration-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const ids = Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
  const [first = '', twice = '', failing = '', invalid = ''] = [ids[0], ...ids.slice(-3)]
  const records = ids.map((id) => {
    if (id === invalid) return { ...userNamed(id), ...WITHOUT_ROLE }
    if (id === failing) return withRepeatedMethod(userNamed(id))
    return id === twice ? { ...userNamed(first), externalUserId: id } : userNamed(id)
  })
  const fixes = [twice, failing, invalid].map((id) => ({ replaces: id, user: userNamed(id) }))
  await writeFile(join(folder, 'users.ndjson'), linesOf(records))
  await writeFile(join(folder, 'fix.ndjson'), linesOf(fixes))
  return { folder, externalUserIds: ids }
}

const linesOf = (values: readonly object[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('')

export interface Place {
  readonly project: Project
  readonly coreUrl: string
  readonly apiKey: string
}

export interface Ended {
  /** `null` after a signal. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

interface StepOptions {
  /** The command dies there: see `dying-command.ts`. */
  readonly dieAt?: string
  /** No file may grow beyond so many blocks: to the process that is a full disk. */
  readonly maxBlocks?: number
  readonly args?: readonly string[]
}

/** Runs `service-auth migrate STEP`. */
export async function runStep(
  { project: { folder }, coreUrl, apiKey }: Place,
  step: 'run' | 'correct' | 'unblock',
  { dieAt, maxBlocks, args = [] }: StepOptions = {},
): Promise<Ended> {
  knowSecret('an API key', apiKey)
  const program =
    dieAt === undefined
      ? await compileCommand()
      : await compile(new URL('dying-command.ts', import.meta.url))
  const files = ['--source', 'users.ndjson', '--journal', 'journal']
  const own = { run: [], correct: ['--corrections', 'fix.ndjson'], unblock: ['--yes'] }[step]
  const argv = ['migrate', step, '--core', coreUrl, '--api-key-stdin', ...OPTIONS, ...files, ...own]
  const limit = maxBlocks === undefined ? '' : `ulimit -f ${maxBlocks};`
  const shell = ['-c', `${limit} exec "$@"`, 'sh', process.execPath, program, ...argv, ...args]
  const env = { PATH: process.env['PATH'], ...(dieAt !== undefined && { DIE_AT: dieAt }) }
  const child = spawn('sh', shell, { cwd: folder, env })
  child.stdin.on('error', () => undefined)
  child.stdin.end(apiKey)
  const closed = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [exitCode] = await closed
  recordOutput('the command', stdout + stderr)
  return { exitCode, stdout, stderr }
}

const OPTIONS = [
  // Runs of other tests are under way on the same core.
  ...['--allow-foreign-rows', '--accept-warnings', 'login_twice'],
  ...['--settle-seconds', '1', '--poll-seconds', '1', '--timeout-ms', '3000'],
]

const TO_CORRECT = 4

/** What the steps have come to, one after the other. */
export async function toTheEnd(
  place: Place,
  step: (place: Place, name: 'run' | 'correct') => Promise<Ended>,
  most = 20,
): Promise<readonly Ended[]> {
  const all: Ended[] = []
  let next: 'run' | 'correct' = 'run'
  while (all.length < most) {
    const ended = await step(place, next)
    all.push(ended)
    if (ended.exitCode === 0) return all
    // A killed `correct` may have been applied, or not: `run` tells.
    next = next === 'run' && ended.exitCode === TO_CORRECT ? 'correct' : 'run'
  }
  throw new Error(`no end after ${most} steps; the last: ${JSON.stringify(all.at(-1))}`)
}

/** To its end, without harm. */
export const unharmed = (place: Place, name: 'run' | 'correct'): Promise<Ended> =>
  runStep(place, name)

/** By external id the core's id, as the command tells it. */
export async function toldAccounts({ folder }: Project): Promise<ReadonlyMap<string, string>> {
  const accounts = await readFile(join(folder, 'journal', 'accounts.ndjson'), 'utf8')
  const told = accounts
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  return new Map(told.map(({ externalUserId, coreUserId }) => [externalUserId, coreUserId]))
}
