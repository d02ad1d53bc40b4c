import type { TestProject } from 'vitest/node'
import { findRedisServer } from './redis-binary.js'
import { makeSpareKeys } from './spare-keys.js'

declare module 'vitest' {
  export interface ProvidedContext {
    redisServer: { binary: string } | { fault: string }
  }
}

/** Finds or installs redis-server once, before the workers start, so that they cannot race for it. */
export default function setup(project: TestProject): void {
  makeSpareKeys()
  try {
    project.provide('redisServer', { binary: findRedisServer() })
  } catch (error) {
    // Not thrown here: the tests that need no Redis still run, those that do fail with this text.
    project.provide('redisServer', { fault: (error as Error).message })
  }
}
