import type { TestProject } from 'vitest/node'
import { type PackedPackage, packPackage } from './pack.js'

declare module 'vitest' {
  export interface ProvidedContext {
    packed: PackedPackage
  }
}

/** Packs the package once for all tests of it; the returned function removes it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { remove, ...packed } = await packPackage()
  project.provide('packed', packed)
  return remove
}
