import { defineConfig, type Plugin } from 'vitest/config'
import { alias } from '../../vitest.config.js'

/** Patterns of test files, separated by commas, that run instead of all: those of one module take minutes. */
const only = process.env['MUTATION_TESTS']?.split(',')

/**
 * Builds a schema whenever it is needed. Stryker would take the first test alone for one that covers it, and run no
 * other.
 */
const schemasAgain: Plugin = {
  name: 'schemas-again',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/src/base/options.ts')) return undefined
    const again = code.replace('value ??= create()', 'create()')
    if (again === code) throw new Error('lazy() is written in another way')
    return again
  },
}

/** The tests beside the mutated modules that start no server: a mutant costs a second, not a minute. */
export default defineConfig({
  plugins: [schemasAgain],
  resolve: { alias },
  test: {
    include: only ?? [
      'test/{base/decision,verification/{policy,token,credential,denylist}}/*.test.ts',
      'test/**/key-set/{key-set-state.properties,remote-source,remote-source.unknown-kid,usable-keys,cache-control}.test.ts',
      'test/**/leased/{record,record-keeper}.test.ts',
      'test/**/postgres/run/outcome.test.ts',
      'test/client/*/{retry-decision,token-state}.test.ts',
      'test/**/admit.test.ts',
      'test/base/{back-off,fetch,raw-headers}.test.ts',
      'test/migration/run/{run-state,reconcile,lost-calls,refused-calls,failed-rows,blocked-rows,waiting}.test.ts',
    ],
    isolate: false,
    setupFiles: ['test/support/run/own-modules.ts'],
    testTimeout: 60_000,
    restoreMocks: true,
  },
})
