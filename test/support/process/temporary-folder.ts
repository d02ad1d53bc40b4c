import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PID_FILE = 'pid'

/**
 * Waits for a line, which calls the watchdog off, or for the end of its input. The input ends when this process
 * ends, in whatever way: then the script kills the noted processes and removes the folder.
 */
const SCRIPT = `trap '' INT TERM HUP
if read -r _; then exit 0; fi
for pid in $(cat "$1/${PID_FILE}" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
rm -rf "$1"`

// Ends the worker when vitest is killed; otherwise it would finish its test first. The check is needed because
// each test file of the worker loads this module again.
if (process.listenerCount('disconnect') === 0) process.once('disconnect', () => process.exit(1))

const watchdogs = new Map<string, () => void>()

/**
 * Makes a folder in another and resolves with its path. When this process ends, even by SIGKILL, a watchdog kills the
 * processes noted in the folder (see `notePids`) and removes it.
 */
export async function temporaryFolder(prefix: string, parent = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(parent, prefix))
  watchdogs.set(folder, startWatchdog(folder))
  return folder
}

export async function removeTemporaryFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  watchdogs.get(folder)?.()
  watchdogs.delete(folder)
}

/** Returns a function that calls the watchdog off. */
function startWatchdog(folder: string): () => void {
  const watchdog = spawn('sh', ['-c', SCRIPT, 'watchdog', folder], {
    // In a separate process group, so that Ctrl-C in a terminal does not end it.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.stdin.on('error', () => {})
  watchdog.unref()
  unrefStream(watchdog.stdin)
  return () => {
    watchdog.stdin.end('done\n')
  }
}

/** Notes the processes to kill, instead of those noted before. */
export function notePids(folder: string, pids: readonly number[]): void {
  writeFileSync(join(folder, PID_FILE), pids.join(' '))
}

export function forgetPid(folder: string): void {
  rmSync(join(folder, PID_FILE), { force: true })
}

/** The pipe to a child is a socket, which without `unref` would keep the test worker alive. */
function unrefStream(stream: object): void {
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
}
