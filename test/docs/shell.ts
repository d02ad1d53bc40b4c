import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Programs that a document tells to start; here each only writes down what it was given. */
const PROGRAMS = ['docker', 'npm', 'npx', 'psql', 'service-auth']

const RECORD = `#!/bin/sh
{ printf '%s\\037' "\${0##*/}" "$@"; printf '\\n'; } >> "$CALLS"
`

/**
 * Runs lines of a shell with programs that only write down how they were started.
 *
 * @returns the words of each program that was started: its name, and what it was given
 * @throws Error where the shell does not understand the lines, or finds no such program
 */
export async function callsOf(script: string): Promise<readonly (readonly string[])[]> {
  const folder = await mkdtemp(join(tmpdir(), 'shell-'))
  try {
    await Promise.all(
      PROGRAMS.map(async (name) => {
        await writeFile(join(folder, name), RECORD)
        await chmod(join(folder, name), 0o755)
      }),
    )
    // Some lines make a folder and go there; a line of the benchmarks writes to one.
    await symlink('/bin/mkdir', join(folder, 'mkdir'))
    const clone = join(folder, 'clone')
    await mkdir(join(clone, 'bench'), { recursive: true })
    const env = {
      PATH: folder,
      CALLS: join(folder, 'calls'),
      DATABASE_URL: 'postgres://there/orders',
    }
    await promisify(execFile)('/bin/sh', ['-eu', '-c', script], { cwd: clone, env })
    const calls = await readFile(env.CALLS, 'utf8').catch(() => '')
    return calls
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\u001f').slice(0, -1))
  } finally {
    await rm(folder, { recursive: true })
  }
}
