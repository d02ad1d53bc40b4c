// The search for secrets runs with every test file (`setup.ts`) and fails the file if a secret is in its output.
// It knows as secrets what is sent in `Authorization`, `Idempotency-Key` and `api-key`, and what `startRedis`,
// `launch` and the shared issuer get or make. It sees as output the channels, `console`, stdout and stderr, child
// processes whose output a test reads, and errors that a test asserts on or passes to `next(error)`. A test adds
// other secrets by `knowSecret`, and other output by `searchedLogger`, `searchedExporter` and `recordOutput`.
// A file that tests channels without subscribers calls `leaveChannels` at its top.
export { knowEnvironment, knowHeaderLines, knowRedisWords, knowToken } from './credentials.js'
export { knowSecret, recordOutput, searchedExporter, searchedLogger } from './session.js'
export { leaveChannels } from './watch.js'
