#!/usr/bin/env node
import { run } from './run.js'

/** 128 and the number of the signal, as a shell says it. */
const EXIT_AFTER_SIGINT = 130

process.once('SIGINT', () => process.exit(EXIT_AFTER_SIGINT))

// Whoever reads may have seen enough (`| head -1`); the exit code still counts.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exitCode = 3
  })
}

process.exitCode = await run(process.argv.slice(2), process)
