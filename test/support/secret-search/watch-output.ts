import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import { format } from 'node:util'
import { vi } from 'vitest'
import { currentSearch, recordOutput, recordPiece } from './session.js'

const LEVELS = ['debug', 'dir', 'error', 'info', 'log', 'table', 'trace', 'warn'] as const

/** Its output is not recorded, because it prints sources, which contain the keys of tests. */
const COMPILER = 'the program esbuild'

const recordLine = (level: string, values: readonly unknown[]): void => {
  recordOutput(`console.${level}`, format(...values))
  recordOutput(`console.${level}`, values)
}

/** Records what is given to `console`. */
export function watchConsole(): void {
  for (const level of LEVELS) {
    const write = console[level].bind(console) as (...values: unknown[]) => void
    console[level] = (...values: unknown[]) => {
      recordLine(level, values)
      write(...values)
    }
  }
}

/** Records the calls that spies have kept from `console`. Call it after each test. */
export function recordSpiedConsole(): void {
  for (const level of LEVELS) {
    if (!vi.isMockFunction(console[level])) continue
    for (const values of vi.mocked(console[level]).mock.calls) recordLine(level, values)
  }
}

/** Records the bytes of stdout and stderr. */
export function watchStandardStreams(): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name]
    const write = stream.write.bind(stream) as (...parameters: unknown[]) => boolean
    stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
      recordPiece(`${name} of the tests`, chunk)
      return write(chunk, ...rest)
    }
  }
}

/** Records the output of child processes, as far as tests read it. */
export function watchChildren(): void {
  subscribe('child_process', (message) => {
    const { process: child } = message as { process: ChildProcess }
    // The channel publishes the child before it has streams.
    process.nextTick(() => {
      const program = programOf(child)
      if (program === COMPILER) return
      for (const name of ['stdout', 'stderr'] as const) {
        if (child[name]) recordWhenRead(child[name], `${name} of ${program}`)
      }
    })
  })
}

/** Records only what a test reads: to read the stream here could take data away from the test. */
function recordWhenRead(stream: Readable, sink: string): void {
  // Keeps the current search, because the program may still write when the next test file runs.
  const search = currentSearch()
  let isRecorded = false
  const record = (): void => {
    if (isRecorded) return
    isRecorded = true
    stream.on('data', (chunk: string | Uint8Array) => search?.recordPiece(sink, chunk))
  }
  stream.once('resume', record)
  if (stream.listenerCount('readable') > 0) record()
  stream.on('newListener', (event) => {
    if (event === 'readable') process.nextTick(record)
  })
}

/** Names the source file of a child or, without one, its command; no arguments, which may be secrets. */
function programOf({ spawnargs, spawnfile }: ChildProcess): string {
  const file = spawnargs?.find(
    (each) => /^[\w./-]+\.[cm]?[jt]s$/.test(each) && !each.startsWith('-'),
  )
  return `the program ${basename(file ?? spawnfile ?? '')}`
}
