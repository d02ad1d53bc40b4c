import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string): string => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** Where `.ci/run` wants the results as JSON, so that it can count them. */
const report = process.env['VITEST_REPORT']

export default defineConfig({
  resolve: {
    alias: [
      { find: /^express-service-auth$/, replacement: source('index.ts') },
      { find: /^express-service-auth\/redis$/, replacement: source('stores/redis/index.ts') },
      { find: /^express-service-auth\/testing$/, replacement: source('testing/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    restoreMocks: true,
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
  },
})
