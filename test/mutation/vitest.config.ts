import { defineConfig, type Plugin } from 'vitest/config'
import { alias } from '../../vitest.config.js'

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

export default defineConfig({
  plugins: [schemasAgain],
  resolve: { alias },
  test: {
    // start.js names the tests of each group of modules.
    include: process.env['MUTATION_TESTS']?.split(' ') ?? [],
    isolate: false,
    setupFiles: ['test/support/run/own-modules.ts'],
    testTimeout: 60_000,
    restoreMocks: true,
  },
})
