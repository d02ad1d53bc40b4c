import { fileURLToPath } from 'node:url'
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config'
import main from '../../../../vitest.config.js'

const [code] = (main.test?.projects ?? []) as UserWorkspaceConfig[]

// As the suite is run, but for the files.
export default defineConfig({
  ...main,
  root: fileURLToPath(new URL('../../../..', import.meta.url)),
  test: {
    ...main.test,
    projects: [
      {
        ...code,
        test: {
          ...code?.test,
          include: ['test/support/secret-search/planted/*.test.ts'],
          exclude: [],
        },
      } as UserWorkspaceConfig,
    ],
  },
})
