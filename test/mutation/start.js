// Changes the modules that decide, one group after the other, each with the tests that are to notice: a change costs
// less than a second, because none of them needs Redis or Postgres. `npm start -- token state` takes these groups alone.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const KEY_SET = 'test/verification/key-set'
const RUN = 'test/migration/run'

const GROUPS = {
  token: {
    modules: ['src/verification/token/*.ts'],
    tests: ['test/verification/token/*'],
  },
  policy: {
    modules: ['src/verification/policy/*.ts'],
    tests: [
      'test/verification/policy/*',
      'test/verification/admit',
      'test/contract/identity',
      'test/middleware/live-denylists',
    ],
  },
  credential: {
    modules: ['src/verification/credential/*.ts'],
    tests: ['test/verification/credential/*'],
  },
  'key-set': {
    modules: ['key-set-state', 'usable-keys', 'cache-control'].map(
      (name) => `src/verification/key-set/${name}.ts`,
    ),
    tests: [
      `${KEY_SET}/key-set-state.properties`,
      `${KEY_SET}/remote-*`,
      `${KEY_SET}/stale-if-error`,
      `${KEY_SET}/ready`,
      `${KEY_SET}/removal`,
      `${KEY_SET}/usable-keys`,
      `${KEY_SET}/cache-control`,
    ],
  },
  denylist: {
    modules: [
      'src/verification/denylist/list-state.ts',
      'src/verification/denylist/merge-entries.ts',
    ],
    tests: ['test/verification/denylist/*'],
  },
  decision: {
    modules: ['src/base/decision/*.ts'],
    tests: [
      'test/base/decision/*',
      'test/verification/denylist/*',
      'test/verification/policy/*',
      'test/verification/admit',
      'test/middleware/refusal-table',
      'test/middleware/require-permissions',
      'test/middleware/accept-one-of/accept-one-of-options',
      'test/middleware/idempotency-key/missing-key',
      'test/telemetry/log/log-decisions',
    ],
  },
  headers: {
    modules: ['src/base/raw-headers.ts', 'src/base/back-off.ts'],
    tests: ['test/base/raw-headers', 'test/base/back-off'],
  },
  fetch: {
    modules: ['src/base/fetch.ts'],
    tests: [
      'test/base/fetch',
      'test/client/core/*',
      'test/client/service-fetch/*',
      'test/client/token-source/mint',
      'test/verification/policy/key-set-address',
      `${KEY_SET}/fetch-key-set`,
    ],
  },
  leased: {
    modules: ['src/idempotency/leased/record.ts', 'src/idempotency/leased/record-keeper.ts'],
    tests: [
      'test/idempotency/leased/*',
      'test/stores/memory-store',
      'test/testing/stores/store-cases',
    ],
  },
  outcome: {
    modules: ['src/stores/postgres/run/outcome.ts'],
    tests: ['test/stores/postgres/run/outcome'],
  },
  client: {
    modules: ['src/client/*/retry-decision.ts', 'src/client/*/token-state.ts'],
    tests: ['test/client/service-fetch/retry-decision', 'test/client/token-source/token-state'],
  },
  state: {
    modules: ['src/migration/run/state/*.ts'],
    tests: [
      `${RUN}/run-state`,
      `${RUN}/replay-journal`,
      `${RUN}/reconcile`,
      `${RUN}/lost-calls`,
      `${RUN}/refused-calls`,
      `${RUN}/failed-rows`,
      `${RUN}/blocked-rows`,
      `${RUN}/waiting`,
      `${RUN}/run`,
    ],
  },
}

const FOUND = ['Killed', 'Timeout']
const MISSED = ['Survived', 'NoCoverage']

/** How many changes of a group were made, and how many of them a test noticed. */
function scoreOf(name) {
  const { modules, tests } = GROUPS[name]
  const { status } = spawnSync(
    process.execPath,
    [
      ...['test/mutation/node_modules/@stryker-mutator/core/bin/stryker.js', 'run'],
      ...['test/mutation/stryker.config.json', '--mutate', modules.join(',')],
    ],
    {
      env: { ...process.env, MUTATION_TESTS: tests.map((test) => `${test}.test.ts`).join(' ') },
      stdio: 'inherit',
    },
  )
  if (status !== 0) throw new Error(`${name} ended with ${status}`)
  const { files } = JSON.parse(readFileSync('test/mutation/reports/mutation.json', 'utf8'))
  const statuses = Object.values(files).flatMap(({ mutants }) =>
    mutants.map((mutant) => mutant.status),
  )
  const count = (those) => statuses.filter((each) => those.includes(each)).length
  return { found: count(FOUND), changes: count([...FOUND, ...MISSED]) }
}

const row = (name, { changes, found }) =>
  `${name.padEnd(12)}${String(changes).padStart(6)}${String(found).padStart(6)}${((100 * found) / changes).toFixed(1).padStart(7)} %`

const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(GROUPS)
const unknown = chosen.filter((name) => !Object.hasOwn(GROUPS, name))
if (unknown.length > 0) throw new Error(`not one of ${Object.keys(GROUPS).join(', ')}: ${unknown}`)
const scores = chosen.map((name) => [name, scoreOf(name)])
const all = { changes: 0, found: 0 }
console.log('group       changes found  score')
for (const [name, score] of scores) {
  console.log(row(name, score))
  all.changes += score.changes
  all.found += score.found
}
console.log(row('all', all))
