import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Answer, call } from '../../support/receiver/order-calls.js'
import type { Stage } from './stage.js'

const PAUSE_MS = 30
const PATIENCE_MS = 20_000

/** What a caller has been told until it was told what has become of its request. */
export interface Retries {
  readonly before: readonly Answer[]
  readonly final: Answer
  readonly tookMs: number
}

/** One request after the other under the same key, until one succeeds. */
export async function retry(port: number, key: string, path = '/orders/1'): Promise<Retries> {
  const startedAt = performance.now()
  const before: Answer[] = []
  for (;;) {
    const final = await call(port, { key, path })
    const tookMs = performance.now() - startedAt
    if (final.status < 300 && !final.isBroken) return { before, final, tookMs }
    before.push(final)
    if (tookMs > PATIENCE_MS) throw new Error(`In vain retried: ${told(before).join(', ')}`)
    await delay(PAUSE_MS)
  }
}

/** One word an answer. */
export const told = (answers: readonly Answer[]): string[] =>
  answers.map(({ status, problem }) => `${status}${problem ? ` ${problem}` : ''}`)

/** For a busy machine, and for libraries that wait for the end of what cannot be ended. */
export const SLACK_MS = 4000

/** The caller is told so in time. */
export async function expectUnavailable(
  port: number,
  key: string,
  withinMs: number,
  statuses: readonly number[] = [503],
): Promise<void> {
  const askedAt = performance.now()
  const { status } = await call(port, { key })
  expect(statuses).toContain(status)
  expect(performance.now() - askedAt).toBeLessThan(withinMs + SLACK_MS)
}

/** The effect that a success names is the only one of its key, and the success is kept. */
export async function expectOnce(
  stage: Stage,
  port: number,
  { key, final, path }: { readonly key: string; readonly final: Answer; readonly path?: string },
): Promise<void> {
  expect(final.status).toBe(201)
  const { effect } = JSON.parse(final.body.toString()) as { effect: string }
  expect(await stage.effects(key)).toEqual([effect])
  const { final: replay } = await retry(port, key, path)
  expect(replay.headers['idempotent-replayed']).toEqual(['true'])
  expect(replay.body).toEqual(final.body)
}
