import { fileURLToPath } from 'node:url'
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import main from '../../../../vitest.config.js'

const [code] = (main.test?.projects ?? []) as UserWorkspaceConfig[]

/** Sorts the files by name, so that the tests know which file ran before in the worker. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((one, other) => one.moduleId.localeCompare(other.moduleId))
  }
}

// The configuration of the test suite, but with these files, in one worker.
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
