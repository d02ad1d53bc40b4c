import type { PortName } from './environment.js'
import { assertPortsFree } from './listen.js'
import { StartError } from './start-error.js'

const FLAGS = ['--once', '--no-page', 'migration']

export interface StartOptions {
  readonly isOnce: boolean
  readonly isMigration: boolean
  readonly hasPage: boolean
}

/**
 * Reads the flags of `npm start`, and checks that the ports it needs are free.
 * @throws {StartError} for an unknown flag, and like `assertPortsFree`
 */
export async function readStartOptions(words: readonly string[]): Promise<StartOptions> {
  const unknown = words.find((word) => !FLAGS.includes(word))
  if (unknown !== undefined) {
    throw new StartError(
      `unknown option ${unknown}; there are --once, --no-page and the story migration`,
    )
  }
  const options = {
    isOnce: words.includes('--once'),
    isMigration: words.includes('migration'),
    hasPage: !words.includes('--no-page'),
  }
  await assertPortsFree(portsOf(options))
  return options
}

function portsOf({ isOnce, isMigration, hasPage }: StartOptions): readonly PortName[] {
  if (isMigration) return ['identityCore']
  const services = ['identityCore', 'issuer', 'orders', 'billing'] as const
  return hasPage && !isOnce ? [...services, 'controlRoom'] : services
}
