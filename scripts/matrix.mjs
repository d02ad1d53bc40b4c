// Runs the tests of outages in full: on Postgres, and once for each client library of Redis. `REDIS_SERVER`
// names the Redis or Valkey server to run them on.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'

const LIBRARIES = [
  'ioredis 6',
  'ioredis 5',
  'iovalkey 0.4',
  'iovalkey 0.3',
  'node-redis 6',
  'node-redis 5',
]
const FAULTS = readdirSync('test/faults').filter((name) => name.endsWith('.test.ts'))
const ON_REDIS = [
  'test/stores/redis',
  'test/stores/encrypted',
  ...FAULTS.map((name) => `test/faults/${name}`),
]

const RUNS = [
  { name: 'Postgres', env: { POSTGRES_FAULTS: 'all' }, tests: ['test/faults/postgres'] },
  ...LIBRARIES.map((name) => ({ name, env: { REDIS_CLIENT: name }, tests: ON_REDIS })),
]

const failed = RUNS.filter(({ name, env, tests }) => {
  console.log(`\n${name}`)
  const { status } = spawnSync(
    'npx',
    ['vitest', 'run', '--project', 'code', '--project', 'system', ...tests],
    { env: { ...process.env, ...env }, stdio: 'inherit' },
  )
  return status !== 0
})
if (failed.length > 0) throw new Error(`failed on ${failed.map(({ name }) => name).join(', ')}`)
