import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const CONFIG = 'test/support/secret-search/planted/vitest.config.ts'

interface FileResult {
  readonly name: string
  readonly status: 'passed' | 'failed'
  readonly message: string
  readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
}

const results = new Map<string, FileResult>()

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'esa-planted-'))
  const outputFile = join(folder, 'results.json')
  const args = ['run', '--config', CONFIG, '--reporter=json', `--outputFile=${outputFile}`]
  // No report and no output of this run, because its files print secrets.
  const env = { ...process.env, VITEST_REPORT: undefined }
  const vitest = spawn(process.execPath, [VITEST, ...args], { cwd: ROOT, env, stdio: 'ignore' })
  expect(await once(vitest, 'exit')).toEqual([1, null])
  const { testResults } = JSON.parse(await readFile(outputFile, 'utf8'))
  for (const result of testResults as FileResult[]) {
    results.set(result.name.split('/').at(-1) ?? '', result)
  }
  await rm(folder, { recursive: true })
})

const SINKS: Record<string, string> = {
  decision: 'the channel express-service-auth:decision, keyId,',
  onDecision: 'the channel express-service-auth:decision, caller,',
  keys: 'the channel express-service-auth:keys, jwksUri,',
  idempotency: 'the channel express-service-auth:idempotency, record,',
  denylist: 'the channel express-service-auth:denylist, reason,',
  store: 'the channel express-service-auth:store, operation,',
  console: 'console.warn',
  'console, an object': 'console.error, [].headers.authorization,',
  'console, spied on': 'console.info',
  pino: 'the log, warn,, [].key,',
  'a span': 'OpenTelemetry, [].attributes.*,',
  'a metric': 'OpenTelemetry, ',
  'an error': 'an error, message,',
  'an error that is thrown': 'an error, message,',
  'the cause of an error that is rejected': 'an error, cause.command.args[],',
  'an error that comes to next': 'an error that came to next(error), cause.args[],',
}

/** Findings in streams name the program, because a stream belongs to no single test. */
const STREAMS = [
  'stdout of the tests',
  'stderr of the tests',
  'stdout of the program node',
  'stderr of the program node',
  'stdout of the program printing.child.mjs',
]

const linesOf = (file: string): string[] => results.get(file)?.message.split('\n') ?? []

it.each(Object.entries(SINKS))('a secret that comes out is found: %s', (test, sink) => {
  const lines = linesOf('ways-out.test.ts').filter((line) => line.endsWith(`«${test}» ran`))
  expect(
    lines.some((line) => line.startsWith(`${sink}`) && line.includes('holds an API key')),
  ).toBe(true)
})

it.each(STREAMS)('a secret that comes out is found: %s', (stream) => {
  expect(linesOf('ways-out.test.ts')).toContainEqual(
    expect.stringContaining(`${stream} holds an API key`),
  )
})

it('a secret is known that goes in, in whatever way', () => {
  const { assertionResults } = results.get('ways-in.test.ts') as FileResult
  const lines = linesOf('ways-in.test.ts')
  expect(assertionResults.length).toBeGreaterThan(10)
  for (const { title } of assertionResults) {
    expect(lines).toContainEqual(expect.stringMatching(`console.log holds .*«${title}» ran`))
  }
})

it('a file answers for what came out of it, not for the file before it in the worker', () => {
  const { assertionResults, message } = results.get('ways-in.test.ts') as FileResult
  expect(message).toContain(`«${assertionResults[0]?.title}»`)
  for (const { title } of assertionResults) {
    expect(results.get('ways-out.test.ts')?.message).not.toContain(`«${title}»`)
  }
})

it('the tests themselves pass: the search alone makes the files fail', () => {
  for (const [file, { status, assertionResults }] of results) {
    expect(assertionResults.map((each) => each.status)).not.toContain('failed')
    expect(status).toBe(file === 'nothing.test.ts' ? 'passed' : 'failed')
  }
})
