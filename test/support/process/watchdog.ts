import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PID_FILE = 'pid'

/**
 * Reads its input until a line comes (all is well: leave) or until the pipe breaks (the process that
 * held the other end is gone, however it went: kill what runs in the folder, and remove it).
 */
const SCRIPT = `trap '' INT TERM HUP
if read -r _; then exit 0; fi
for pid in $(cat "$1/${PID_FILE}" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
rm -rf "$1"`

// A worker whose vitest was killed would go on to the end of its test. It runs several test files,
// each with this module again.
if (process.listenerCount('disconnect') === 0) process.once('disconnect', () => process.exit(1))

/**
 * Sees to it that the folder and the processes noted in it (see `notePids`) do not outlive this process,
 * which may end in whatever way, SIGKILL included. Returns a function that calls the watchdog off.
 */
export function guardFolder(folder: string): () => void {
  const watchdog = spawn('sh', ['-c', SCRIPT, 'watchdog', folder], {
    // A group of its own, so that Ctrl-C in a terminal does not reach it before its work is done.
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

/** In place of what was noted before. */
export function notePids(folder: string, pids: readonly number[]): void {
  writeFileSync(join(folder, PID_FILE), pids.join(' '))
}

export function forgetPid(folder: string): void {
  rmSync(join(folder, PID_FILE), { force: true })
}

/** A pipe to a child process is a socket; an open one must not hold the test worker open. */
function unrefStream(stream: object): void {
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
}
