// The search for secrets runs with every test file (`setup.ts`). By itself it knows what is sent in
// `Authorization`, `Idempotency-Key` and `api-key`, what `startRedis`, `launch` and the shared issuer
// are given, and sees the channels, `console`, stdout and stderr, child processes whose output a test
// reads, and errors on which a test asserts or that come to `next(error)`. Of the rest a test tells
// it: `knowSecret` for what goes in, the functions with `searched` and `recordOutput` for what comes
// out. A file whose subject is that nobody listens calls `leaveChannels` at its top.
export {
  knowEnvironment,
  knowHeaderLines,
  knowRedisClient,
  knowRedisWords,
  knowToken,
} from './credentials.js'
export { searchedExporter, searchedLogger } from './searched.js'
export { knowSecret, recordOutput } from './session.js'
export { leaveChannels } from './watch-channels.js'
