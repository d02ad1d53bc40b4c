import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The core that the project `core` runs against; elsewhere a stand-in is started. */
    givenCore: { readonly url: string; readonly apiKey: string }
  }
}

/** Tells the tests of the core where the core is. */
export default function setup(project: TestProject): void {
  const url = process.env['CORE_URL']
  const apiKey = process.env['CORE_API_KEY']
  if (!url || !apiKey) throw new Error('set CORE_URL and CORE_API_KEY: which core is to be tested?')
  project.provide('givenCore', { url: url.replace(/\/$/, ''), apiKey })
}
