#!/usr/bin/env node
import { run } from './run-command.js'

/** 128 and the number of the signal, as a shell says it. */
const EXIT_AFTER_SIGINT = 130

process.once('SIGINT', () => {
  // A command that listens too ends by itself; the next signal ends the process.
  if (process.listenerCount('SIGINT') === 0) process.exit(EXIT_AFTER_SIGINT)
})

/** Nobody may have learned what was found. */
const EXIT_WITHOUT_OUTPUT = 3

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever reads may have seen enough (`| head -1`).
    if (error.code !== 'EPIPE') process.exitCode = EXIT_WITHOUT_OUTPUT
  })
}

/** ioredis may reject where nobody can listen; its message may quote what it was given. */
process.on('unhandledRejection', () => {
  process.stderr.write('service-auth: a client has failed unexpectedly: are its options right?\n')
  process.exit(EXIT_WITHOUT_OUTPUT)
})

const exitCode = await run(process.argv.slice(2), process)
process.exitCode ??= exitCode
