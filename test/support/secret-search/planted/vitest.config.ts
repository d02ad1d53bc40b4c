import { fileURLToPath } from 'node:url'
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import main from '../../../../vitest.config.js'

const [code] = (main.test?.projects ?? []) as UserWorkspaceConfig[]

/** By name, so that it is known what each file finds in the worker. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((one, other) => one.moduleId.localeCompare(other.moduleId))
  }
}

// As the suite is run, but for the files, which share one worker.
export default defineConfig({
  ...main,
  root: fileURLToPath(new URL('../../../..', import.meta.url)),
  test: {
    ...main.test,
    maxWorkers: 1,
    sequence: { sequencer: ByName },
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
