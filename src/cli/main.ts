#!/usr/bin/env node
import { nodeFault } from '../base/supported-node.js'

const fault = nodeFault()
if (fault !== undefined) {
  process.stderr.write(`service-auth: ${fault}\n`)
  process.exit(2)
}
// Loads nothing else on a Node that could not.
const { run } = await import('./run-command.js')

/** 128 plus the number of the signal, as in a shell. */
const EXIT_AFTER_SIGINT = 130

process.once('SIGINT', () => {
  // A command that also listens ends by itself; the next signal ends the process.
  if (process.listenerCount('SIGINT') === 0) process.exit(EXIT_AFTER_SIGINT)
})

/** The output may have been lost. */
const EXIT_WITHOUT_OUTPUT = 3

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader may have closed the pipe on purpose (`| head -1`).
    if (error.code !== 'EPIPE') process.exitCode = EXIT_WITHOUT_OUTPUT
  })
}

/** A client of Redis may reject a promise that no code can handle; its message may quote its options. */
process.on('unhandledRejection', () => {
  process.stderr.write('service-auth: the Redis client failed unexpectedly; check its options\n')
  process.exit(EXIT_WITHOUT_OUTPUT)
})

const exitCode = await run(process.argv.slice(2), process)
process.exitCode ??= exitCode
