import {
  type KeySet,
  type RemoteKeySetOptions,
  remoteKeySet,
  serviceAuth,
} from 'express-service-auth'
import { onTestFinished } from 'vitest'
import { type KeySource, keySourceOf } from '../../../src/verification/key-set/key-set.js'
import {
  type Behaviour,
  type KeySetServer,
  startKeySetServer,
} from '../../support/issuer/key-set-server.js'
import { POLICY } from '../../support/issuer/signing-keys.js'
import { type ManualClock, manualClock } from '../../support/manual-clock.js'
import { behind, startReceiver } from '../../support/receiver/receiver.js'

interface OpenKeySet {
  readonly server: KeySetServer
  readonly clock: ManualClock
  readonly keySet: KeySet
  /** The key set as verification uses it. */
  readonly source: KeySource
}

/** Starts a key set server that is closed after the test. */
export async function openKeySetServer(...behaviours: Behaviour[]): Promise<KeySetServer> {
  const server = await startKeySetServer(...behaviours)
  onTestFinished(() => server.close())
  return server
}

/** Opens a key set and its server, which are closed after the test. */
export async function openKeySet(
  behaviours: readonly Behaviour[],
  options: Partial<RemoteKeySetOptions> = {},
): Promise<OpenKeySet> {
  const server = await openKeySetServer(...behaviours)
  const clock = manualClock()
  const keySet = remoteKeySet({ jwksUri: server.url, clock, ...options })
  onTestFinished(() => keySet.close())
  const source = keySourceOf(keySet)
  if (source === undefined) throw new Error('the key set has no source')
  return { server, clock, keySet, source }
}

/** The same, once it has fetched its first set. */
export async function openReadyKeySet(
  ...given: Parameters<typeof openKeySet>
): Promise<OpenKeySet> {
  const opened = await openKeySet(...given)
  await opened.keySet.ready()
  return opened
}

/** Opens, beside key set and server, a receiver that decides by `POLICY` and these keys. */
export async function openReceiverOfKeySet(
  behaviours: readonly Behaviour[],
  options: Partial<RemoteKeySetOptions> = {},
) {
  const opened = await openKeySet(behaviours, options)
  const auth = serviceAuth({ ...POLICY, keySet: opened.keySet, clock: opened.clock })
  return { ...opened, auth, receiver: await startReceiver(behind(auth)) }
}
