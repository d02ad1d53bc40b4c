// Runs the tests of Redis once for each client library. `REDIS_SERVER` names the server to run them on.
import { spawnSync } from 'node:child_process'

const LIBRARIES = [
  'ioredis 6',
  'ioredis 5',
  'iovalkey 0.4',
  'iovalkey 0.3',
  'node-redis 6',
  'node-redis 5',
]
const TESTS = [
  'test/stores/redis',
  'test/stores/encrypted',
  'test/faults/redis',
  'test/faults/denylist',
]

const failed = LIBRARIES.filter((library) => {
  console.log(`\n${library}`)
  const { status } = spawnSync(
    'npx',
    ['vitest', 'run', '--project', 'code', '--project', 'system', ...TESTS],
    {
      env: { ...process.env, REDIS_CLIENT: library },
      stdio: 'inherit',
    },
  )
  return status !== 0
})
if (failed.length > 0) throw new Error(`failed with ${failed.join(', ')}`)
