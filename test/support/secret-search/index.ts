// The search for secrets runs with every test file (`setup.ts`) and fails the file if a secret is in its output.
// It knows as secrets what is sent in `Authorization`, `Idempotency-Key` and `api-key`, and what `startRedis`,
// `launch` and the shared issuer get or make. It sees as output the channels, `console`, stdout and stderr, and errors
// that a test asserts on or passes to `next(error)`. A test adds other secrets by `knowSecret`, and other output, such
// as that of a logger, an exporter or a command, by `recordOutput`.
// A file that tests channels without subscribers calls `leaveChannels` at its top.
export { knowEnvironment, knowRedisWords, knowToken } from './credentials.js'
export { knowSecret, recordOutput } from './session.js'
export { leaveChannels } from './watch.js'
