import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const source = (path: string): string => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** What the package is called, to those that use it as its users do. */
export const alias = [
  { find: /^express-service-auth$/, replacement: source('index.ts') },
  { find: /^express-service-auth\/redis$/, replacement: source('stores/redis/index.ts') },
  {
    find: /^express-service-auth\/postgres$/,
    replacement: source('stores/postgres/index.ts'),
  },
  { find: /^express-service-auth\/otel$/, replacement: source('telemetry/otel/index.ts') },
  { find: /^express-service-auth\/client$/, replacement: source('client/index.ts') },
  { find: /^express-service-auth\/migration$/, replacement: source('migration/index.ts') },
  { find: /^express-service-auth\/testing$/, replacement: source('testing/index.ts') },
]

/** Where `.ci/run` wants the results as JSON, so that it can count them. */
const report = process.env['VITEST_REPORT']

/**
 * Tests of the package that users install, and of the site: slow, and part of `npm run check`.
 */
const OF_THE_PACKAGE = [
  'test/package/**/*.test.ts',
  'test/types/**/*.test.ts',
  'test/site/**/*.test.ts',
]

/**
 * Whole programs, servers that fail, and what runs over each database library: slow, and a run of its own.
 */
const OF_THE_SYSTEM = [
  'test/{faults,example-app,docs}/**/*.test.ts',
  'test/readme.test.ts',
  // Beside cookie-parser, which `npm ci` does not install.
  'test/sdk/accept-one-of.test.ts',
  'test/simulation/all-stories.test.ts',
  'test/stores/redis/{denylist/faults,denylist/topologies,connection/{replicated-runs,sentinel}}.test.ts',
  // A process for each library of Redis.
  'test/stores/redis/clients/process.test.ts',
  'test/stores/postgres/{answers-on-the-wire,check,ended-by-handler,missing-key,pools,races}.test.ts',
  // On each library of Postgres.
  'test/stores/postgres/{late-use,server-failures,silent-replies}.test.ts',
  'test/stores/postgres/adapters/{async-context,clients,drizzle,pgbouncer,postgres-js,ready-and-ended,runners}.test.ts',
  'test/stores/postgres/sql/statements-by-library.test.ts',
  'test/stores/postgres/guard/calls-under-way.test.ts',
  // The tests' own support.
  'test/support/secret-search/*.test.ts',
  'test/support/core/**/*.test.ts',
  'test/support/process/*.test.ts',
  // Twelve thousand requests, and a caller that waits for the budget of fetches: ten seconds.
  'test/verification/key-set/{flood,rotation-in-a-flood}.test.ts',
]

/** Packages bring tests of their own. */
const OF_PACKAGES = '**/node_modules/**'

/** A migration that is killed again and again: minutes, and a run of its own. */
const SLOW_OF_MIGRATION = ['test/faults/migration/**/*.test.ts']

/** Gives each test file modules of its own in a worker that it shares. */
const OWN_MODULES = 'test/support/run/own-modules.ts'

/** First of all: what the tests leave behind is removed with it. */
const TEMPORARY_HOME = 'test/support/run/temporary-home.ts'

/** Learns what secrets a test file sends, and fails it when one comes out. */
const SEARCH_FOR_SECRETS = 'test/support/secret-search/setup.ts'

/** They run for long, and are short to read: a clean clone begins with the largest files, and these would end it alone. */
const LONG =
  /\/(simulation\/(all-stories|leased|coupled)|silent-replies|clients\/process|sentinel)\.test\.ts$/

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => (LONG.test(moduleId) ? 0 : 1)
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other))
  }
}

/** How the tests of the code run. */
const OF_THE_CODE = {
  // Half of the processor time went into a process for each file.
  isolate: false,
  setupFiles: [OWN_MODULES, SEARCH_FOR_SECRETS],
  globalSetup: [TEMPORARY_HOME, 'test/support/run/global-setup.ts'],
}

export default defineConfig({
  resolve: { alias },
  test: {
    // Most tests wait for servers more than they work.
    maxWorkers: 3 * availableParallelism(),
    sequence: { sequencer: LongFirst },
    // A busy machine makes everything take longer; what hangs hangs for good.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    restoreMocks: true,
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
    projects: [
      {
        extends: true,
        test: {
          ...OF_THE_CODE,
          name: 'code',
          include: ['test/**/*.test.ts'],
          exclude: [...OF_THE_PACKAGE, ...OF_THE_SYSTEM, ...SLOW_OF_MIGRATION, OF_PACKAGES],
        },
      },
      {
        extends: true,
        test: {
          ...OF_THE_CODE,
          name: 'system',
          include: OF_THE_SYSTEM,
          exclude: [...SLOW_OF_MIGRATION, OF_PACKAGES],
        },
      },
      {
        extends: true,
        test: {
          ...OF_THE_CODE,
          name: 'core',
          include: ['test/core/**/*.test.ts'],
          globalSetup: [TEMPORARY_HOME, 'test/core/given-core.ts'],
          // Its job starts every five minutes.
          testTimeout: 1_000_000,
        },
      },
      {
        extends: true,
        test: {
          ...OF_THE_CODE,
          name: 'migration',
          include: SLOW_OF_MIGRATION,
          testTimeout: 900_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: OF_THE_PACKAGE,
          setupFiles: [SEARCH_FOR_SECRETS],
          testTimeout: 180_000,
          hookTimeout: 300_000,
          globalSetup: [
            TEMPORARY_HOME,
            'test/support/run/global-setup.ts',
            'test/package/global-setup.ts',
          ],
        },
      },
    ],
  },
})
