import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { LIBRARIES } from './libraries.js'
import { OPEN_RUNNERS } from './open-runners.js'

export interface AnyRunner {
  readonly runner: TransactionRunner<unknown>
  end(): Promise<unknown>
}

type Open = (url: string, max: number) => Promise<AnyRunner>

const ofLibraries = Object.entries(LIBRARIES).map(([name, openLibrary]): [string, Open] => [
  name,
  async (url, max) => {
    const { runner, close } = await openLibrary(url, max)
    return { runner, end: close }
  },
])

const others = OPEN_RUNNERS.map(([name, open]): [string, Open] => [
  name,
  async (url, max) => open(url, max),
])

/** Runners on all libraries, by name. */
export const ALL_RUNNERS: readonly [string, Open][] = [...others, ...ofLibraries]
