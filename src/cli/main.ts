#!/usr/bin/env node
import { nodeFault } from '../base/supported-node.js'

const fault = nodeFault()
if (fault !== undefined) {
  process.stderr.write(`service-auth: ${fault}\n`)
  process.exit(2)
}
// Imported only now, because a Node that is too old may fail to load it.
const { run } = await import('./run-command.js')

/** 128 plus the number of the signal, as in a shell. */
const EXIT_AFTER_SIGINT = 130

process.once('SIGINT', () => {
  // A command with a listener stops by itself. A second SIGINT then finds no listener and ends the process.
  if (process.listenerCount('SIGINT') === 0) process.exit(EXIT_AFTER_SIGINT)
})

/** An output stream or the Redis client has failed, so the output may be incomplete. */
const EXIT_INCOMPLETE = 3

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader may have closed the pipe on purpose (`| head -1`).
    if (error.code !== 'EPIPE') process.exitCode = EXIT_INCOMPLETE
  })
}

/** A Redis client may reject a promise that it returns to nobody. The error may quote the client's options. */
process.on('unhandledRejection', () => {
  process.stderr.write('service-auth: the Redis client failed unexpectedly; check its options\n')
  process.exit(EXIT_INCOMPLETE)
})

const exitCode = await run(process.argv.slice(2), process)
process.exitCode ??= exitCode
