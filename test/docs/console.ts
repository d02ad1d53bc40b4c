import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { compileCommand } from '../cli/kit.js'
import { blocksOf } from './markdown.js'

/** What a document says that a command prints. */
export interface Exchange {
  readonly command: string
  readonly output: string
}

/** The commands of the `console` blocks of a text, from top to bottom. */
export function exchangesIn(text: string): readonly Exchange[] {
  return blocksOf('console', text).flatMap((block) => block.split(/^\$ /m).slice(1).map(exchangeOf))
}

/** A command goes on in the next line after a backslash. */
function exchangeOf(shown: string): Exchange {
  const [command = ''] = /^(?:.*\\\n)*.*\n/.exec(shown) ?? []
  return { command: command.trimEnd(), output: shown.slice(command.length) }
}

/** The lines of the `json` blocks of a text: what a receiver logs. */
export const logLinesIn = (text: string): readonly string[] =>
  blocksOf('json', text).flatMap((block) => block.trimEnd().split('\n'))

const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID'],
  [/(?<![\w-])(?=[\w-]*[A-Z0-9])[\w-]{24}(?![\w-])/g, 'RECORD'],
  [/\bd-\d+/g, 'd-KEY'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/\b127\.0\.0\.1(?::\d+)?/g, 'HOST'],
  [/\d+(?:\.\d+)?/g, 'N'],
  [/\bN ?(?:ms|s|m|min|h|days)\b/g, 'N TIMES'],
  [/agrees with this machine|N TIMES (?:ahead of|behind) this machine's/g, 'CLOCK'],
  // How quick a machine is, is not what the run-book is about.
  [/^ +warning +slow .*\n/gm, ''],
  [/ {2,}/g, ' '],
]

/** A text without what differs from run to run: numbers, times, ids, digests, hosts. */
export function masked(text: string): string {
  return MASKS.reduce((rest, [pattern, mask]) => rest.replaceAll(pattern, mask), text).trimEnd()
}

/**
 * The lines that a command has printed, masked, without those that the document leaves out: a line `...` of
 * what it shows stands for any number of lines.
 */
function shownLines(shown: string, printed: string): readonly string[] {
  const rest = masked(printed).split('\n')
  const wanted = masked(shown).split('\n')
  const lines = wanted.flatMap((line, index) => {
    if (line !== '...') return rest.splice(0, 1)
    const next = wanted[index + 1]
    rest.splice(0, next === undefined ? rest.length : Math.max(0, rest.indexOf(next)))
    return ['...']
  })
  return [...lines, ...rest]
}

/** Fails unless the command has printed what the document says, in any order if that is open. */
export function expectShown(
  { command, output }: Exchange,
  printed: string,
  inOrder: (lines: readonly string[]) => readonly string[] = (lines) => lines,
): void {
  const lines = shownLines(output, printed)
  expect(inOrder(lines), command).toEqual(inOrder(masked(output).split('\n')))
}

/** A folder with `service-auth` on its path. */
export async function placeCommand(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'run-book-')))
  const program = `exec '${process.execPath}' '${await compileCommand()}' "$@"`
  await mkdir(join(folder, 'bin'))
  await writeFile(join(folder, 'bin', 'service-auth'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
  return folder
}

/** As somebody at a terminal in the folder reads it. */
export function inShell(
  command: string,
  folder: string,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  const env = { ...environment, PATH: `${join(folder, 'bin')}:${process.env['PATH']}` }
  return new Promise((resolve) => {
    execFile('sh', ['-c', command], { cwd: folder, env }, (_, stdout) => resolve(stdout))
  })
}
