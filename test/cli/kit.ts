import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFinished } from 'vitest'
import type { Command } from '../../src/cli/frame/command.js'
import { run } from '../../src/cli/run-command.js'
import { compile } from '../support/process/compile.js'
import { recordOutput } from '../support/secret-search/index.js'

/** What a run of the command has left. */
export interface Ran {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** The one JSON object on standard output. */
  json(): Record<string, unknown>
}

interface RunOptions {
  readonly stdin?: string | Buffer
  readonly isTTY?: boolean
  /** Of the terminal that standard error is, if it is one. */
  readonly columns?: number
  readonly env?: Readonly<Record<string, string>>
  readonly commands?: readonly Command[]
}

/** Runs `service-auth` in this process. Its output is searched for secrets. */
export async function runHere(argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { stdin = '', isTTY = false, columns, env = {}, commands } = options
  const out: string[] = []
  const err: string[] = []
  const io = {
    stdin: Object.assign(Readable.from([Buffer.from(stdin)]), { isTTY }),
    stdout: { write: (text: string) => out.push(text) },
    stderr: {
      write: (text: string) => err.push(text),
      ...(columns !== undefined && { isTTY: true, columns }),
    },
    env,
  }
  const exitCode = await run(argv, io, commands)
  recordOutput('service-auth', [...out, ...err])
  const stdout = out.join('')
  return { exitCode, stdout, stderr: err.join(''), json: () => readOnlyLine(stdout) }
}

function readOnlyLine(stdout: string): Record<string, unknown> {
  const [line, ...more] = stdout.split('\n')
  if (line === undefined || more.join() !== '') throw new Error(`not one line: ${stdout}`)
  return JSON.parse(line)
}

/** Runs it for people and for programs, and shows `hunter2` to neither. `object` is what programs get. */
export async function runBoth(argv: readonly string[], options: RunOptions = {}) {
  const ran = await runHere(argv, options)
  const asJson = await runHere([...argv, '--json'], options)
  expect(asJson.exitCode).toBe(ran.exitCode)
  expect(ran.stdout + ran.stderr + asJson.stdout + asJson.stderr).not.toContain('hunter2')
  return { ...ran, object: asJson.json() }
}

/** Expects a run that ended with one line on standard error, which has these words, and nothing else. */
export function expectFailure(ran: Ran, exitCode: 1 | 2 | 3, words: string | RegExp): void {
  expect(ran).toMatchObject({ exitCode, stdout: '' })
  expect(ran.stderr).toMatch(/^service-auth: [^\n]*\n$/)
  expect(ran.stderr).toMatch(words)
}

/** A folder for one test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-cli-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** The path of a file for one test; with `mode` 0o600 unless another is wanted. */
export async function temporaryFile(contents: string | Buffer, mode = 0o600): Promise<string> {
  const path = join(await temporaryFolder(), 'file.json')
  await writeFile(path, contents)
  await chmod(path, mode)
  return path
}

/** A child process that runs `service-auth`, and what it will have left. */
export interface ChildRun {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<Omit<Ran, 'exitCode'> & { readonly exitCode: number | null }>
}

/** The path of `service-auth` as JavaScript. */
export const compileCommand = (): Promise<string> =>
  compile(new URL('../../src/cli/main.ts', import.meta.url))

/** Runs `service-auth` in a process of its own, to its end. */
export const runChild = async (
  argv: readonly string[],
  options: RunOptions = {},
): ChildRun['ended'] => (await startChild(argv, options)).ended

/** The same from its start; standard input stays open without `stdin`. */
export async function startChild(
  argv: readonly string[],
  options: RunOptions = {},
): Promise<ChildRun> {
  const { PATH, HOME, TMPDIR } = process.env
  const env = {
    ...options.env,
    ...(PATH && { PATH }),
    ...(HOME && { HOME }),
    ...(TMPDIR && { TMPDIR }),
  }
  const child = spawn(process.execPath, [await compileCommand(), ...argv], { env })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    recordOutput('service-auth', text)
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    recordOutput('service-auth', text)
    stderr += text
  })
  child.stdin.on('error', () => {})
  if (options.stdin !== undefined) child.stdin.end(options.stdin)
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close').then(([exitCode]) => ({
    exitCode: exitCode as number | null,
    stdout,
    stderr,
    json: () => readOnlyLine(stdout),
  }))
  return { child, ended }
}
