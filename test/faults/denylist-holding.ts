import { expect } from 'vitest'
import { WRITE_PATIENCE } from './denylist-figures.js'
import { controlToken, type DenylistScene, newTarget, type Target } from './denylist-scene.js'
import type { Traffic } from './denylist-traffic.js'

/** Traffic with three tokens: one that is denied, one that will be, and one that nobody touches. */
export interface Holding {
  readonly held: Target
  readonly late: Target
  readonly traffic: Traffic
  /** Of `performance.now`, when all receivers held the first. */
  readonly began: number
  /** The third one was accepted all the time. */
  expectUndisturbed(): void
}

/** Denies a key, and waits until all receivers hold that. The traffic ends with the scene. */
export async function holdDenied(scene: DenylistScene): Promise<Holding> {
  const { receivers, desk } = scene
  await scene.untilState('fresh')
  const held = newTarget(scene, 'key')
  const late = newTarget(scene, 'caller')
  const control = controlToken(scene)
  await desk.deny(held.entry, WRITE_PATIENCE)
  const traffic = scene.startTraffic([held.token, late.token, control])
  await traffic.settled('refused', { token: held.token, receivers })
  await traffic.settled('accepted', { token: late.token, receivers })
  const began = performance.now()
  return {
    held,
    late,
    traffic,
    began,
    expectUndisturbed() {
      for (const outcome of ['refused', 'unknown', 'other'] as const) {
        const question = { token: control, receivers, since: began }
        expect(traffic.has(outcome, question), `the control was ${outcome}`).toBe(false)
      }
    },
  }
}
