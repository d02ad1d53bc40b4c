import { type KeySet, type RemoteKeySetOptions, remoteKeySet } from 'express-service-auth'
import { onTestFinished } from 'vitest'
import { type KeySource, sourceOf } from '../../../src/verification/key-set/key-set.js'
import { type ManualClock, manualClock } from '../manual-clock.js'
import { type Behaviour, type KeySetServer, startKeySetServer } from './key-set-server.js'

export interface OpenKeySet {
  readonly server: KeySetServer
  readonly clock: ManualClock
  readonly keySet: KeySet
  /** What verification sees of it. */
  readonly source: KeySource
}

/** A key set and its server, until the end of the test. */
export async function openKeySet(
  behaviours: readonly Behaviour[],
  options: Partial<RemoteKeySetOptions> = {},
): Promise<OpenKeySet> {
  const server = await startKeySetServer(...behaviours)
  const clock = manualClock()
  const keySet = remoteKeySet({ jwksUri: server.url, clock, ...options })
  onTestFinished(() => {
    keySet.close()
    return server.close()
  })
  const source = sourceOf(keySet)
  if (source === undefined) throw new Error('the key set has no source')
  return { server, clock, keySet, source }
}
