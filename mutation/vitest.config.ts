import { defineConfig } from 'vitest/config'
import { alias } from '../vitest.config.js'

/** The tests beside the mutated modules that start no server: a mutant costs a second, not a minute. */
export default defineConfig({
  resolve: { alias },
  test: {
    include: [
      'test/**/{decision,policy,token,credential,denylist}/*.test.ts',
      'test/**/key-set/{life,life.properties,search,screen,freshness,budget}.test.ts',
      'test/**/held-response/phase.test.ts',
      'test/**/leased/{record,resolution}.test.ts',
      'test/**/postgres/run/{life,failure}.test.ts',
      'test/**/client/{next-step,outcome,token-life}.test.ts',
      'test/**/admit.test.ts',
      'test/**/{back-off,retry-after}.test.ts',
      'test/**/migration/run/next-step.test.ts',
    ],
    isolate: false,
    setupFiles: ['test/support/own-modules.ts'],
    testTimeout: 60_000,
  },
})
