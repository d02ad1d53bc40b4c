import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT, runIn } from './pack.js'
import { createProject } from './project.js'

/** Far beyond what a run takes: a process that does not end by itself runs into it. */
const RUN_LIMIT_MS = 120_000

/** Generating RSA keys takes a while on a machine that is busy with the other tests. */
const PATIENCE = '--testTimeout=60000'

export interface RunnerResult {
  /** `null` when the process had to be killed. */
  readonly exitCode: number | null
  readonly output: string
}

/** What a runner says of its tests. */
export interface Report extends RunnerResult {
  readonly passed: readonly string[]
  /** Those that failed, and those that did not run. */
  readonly others: readonly string[]
}

export type RunnerName = 'vitest' | 'node:test' | 'jest'

export interface KitProject {
  /** Runs a file of tests, `orders` or `store`, as a user would. */
  test(runner: RunnerName, subject: string, env?: Record<string, string>): Promise<Report>
  /** Runs a program of the project. */
  run(program: string): Promise<RunnerResult>
  remove(): Promise<void>
}

/** A user's project, far from this repository, that has installed the tarball and is compiled. */
export async function createKitProject(tarball: string): Promise<KitProject> {
  const { folder, install, remove } = await createProject('testing-kit')
  try {
    await install(tarball, 'jest@30.5.2', 'express', '@types/express', '@types/node')
    // The one that runs this file: to install it once more would take longer than all the rest.
    await symlink(join(ROOT, 'node_modules/vitest'), join(folder, 'node_modules/vitest'))
    await runIn(folder, [join(ROOT, 'node_modules/.bin/tsc'), '-p', '.'])
  } catch (error) {
    await remove()
    throw error
  }
  return {
    async test(runner, subject, env = {}) {
      const { args, read } = RUNNERS[runner]
      const result = await runNode(folder, args(subject), env)
      return { ...result, ...read(result.output) }
    },
    run: (program) => runNode(folder, [program], {}),
    remove,
  }
}

type Outcomes = Pick<Report, 'passed' | 'others'>

interface Runner {
  args(subject: string): string[]
  read(output: string): Outcomes
}

const RUNNERS: Record<RunnerName, Runner> = {
  vitest: {
    args: (subject) => [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--reporter=json',
      PATIENCE,
      `src/${subject}.vitest.spec.ts`,
    ],
    read: readJson,
  },
  'node:test': {
    args: (subject) => ['--test', '--test-reporter=tap', `build/${subject}.node.spec.js`],
    read: readTap,
  },
  jest: {
    args: (subject) => [
      '--experimental-vm-modules',
      'node_modules/jest/bin/jest.js',
      '--json',
      PATIENCE,
      `build/${subject}.jest.spec.js`,
    ],
    read: readJson,
  },
}

/** The report that vitest has taken over from jest. */
function readJson(output: string): Outcomes {
  const report = JSON.parse(output.slice(output.indexOf('{"num'))) as {
    testResults: { assertionResults: { title: string; status: string }[] }[]
  }
  const tests = report.testResults.flatMap((file) => file.assertionResults)
  const titles = (wanted: boolean): string[] =>
    tests.filter(({ status }) => (status === 'passed') === wanted).map(({ title }) => title)
  return { passed: titles(true), others: titles(false) }
}

function readTap(output: string): Outcomes {
  const outcomes = { passed: [] as string[], others: [] as string[] }
  for (const [, not, escaped = ''] of output.matchAll(/^ *(not )?ok \d+ - (.*)$/gm)) {
    const title = escaped.replace(/\\([\\#])/g, '$1')
    const isPassed = not === undefined && !/ # (SKIP|TODO)/.test(escaped)
    outcomes[isPassed ? 'passed' : 'others'].push(title)
  }
  return outcomes
}

function runNode(cwd: string, args: string[], env: Record<string, string>): Promise<RunnerResult> {
  const options = { cwd, env: { ...ownEnvironment(), ...env }, timeout: RUN_LIMIT_MS }
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      args,
      { ...options, maxBuffer: 1e8 },
      (_error, stdout, stderr) =>
        resolve({ exitCode: child.exitCode, output: `${stderr}\n${stdout}` }),
    )
  })
}

/** Without what the runner of this file has put there for its own processes. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const foreign = /^(VITEST|TEST$|NODE_ENV$|NODE_OPTIONS$|NODE_V8_COVERAGE$|FORCE_COLOR$)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
}
