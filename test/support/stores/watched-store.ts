import type { Ending, IdempotencyStore, Reservation, Run } from 'express-service-auth'
import { withResolvers } from '../with-resolvers.js'

type Step = 'reserve' | 'renew' | 'settle'

export interface WatchedStore extends IdempotencyStore {
  /** The calls of `settle`, in order: the type of ending and the answer. */
  readonly endings: { readonly type: Ending['type']; readonly answer: boolean | 'failed' }[]
  renewals(): number
  readonly fences: number[]
  /** From now on, makes a step fail or, with `false`, work again. */
  fail(step: Step, fails?: boolean): void
  /** From now on, holds calls of a step back; the returned function lets them continue. */
  hold(step: Step): () => void
  /** Resolves once a step was called so many times, even if the calls are held back. */
  asked(step: Step, times?: number): Promise<void>
}

/** Wraps a store, so that a test can watch its calls, hold them back and make them fail. */
export function watchedStore(store: IdempotencyStore): WatchedStore {
  const endings: WatchedStore['endings'] = []
  const fences: number[] = []
  const failing = new Set<Step>()
  const gates = new Map<Step, Promise<void>>()
  const counts: Record<Step, number> = { reserve: 0, renew: 0, settle: 0 }
  const waiting: { step: Step; times: number; resolve(): void }[] = []

  async function pass<T>(step: Step, work: () => Promise<T>): Promise<T> {
    counts[step] += 1
    for (const { step: of, times, resolve } of waiting) if (counts[of] >= times) resolve()
    await gates.get(step)
    if (failing.has(step)) throw new Error(`${step} is unreachable`)
    return work()
  }

  return {
    endings,
    fences,
    renewals: () => counts.renew,
    async reserve(request): Promise<Reservation> {
      const found = await pass('reserve', () => store.reserve(request))
      if (found.outcome === 'reserved') fences.push(found.fence)
      return found
    },
    renew: (run: Run) => pass('renew', () => store.renew(run)),
    async settle(run, ending) {
      try {
        const answer = await pass('settle', () => store.settle(run, ending))
        endings.push({ type: ending.type, answer })
        return answer
      } catch (error) {
        endings.push({ type: ending.type, answer: 'failed' })
        throw error
      }
    },
    fail(step, fails = true) {
      if (fails) failing.add(step)
      else failing.delete(step)
    },
    hold(step) {
      const { promise, resolve } = withResolvers()
      gates.set(step, promise)
      return () => {
        gates.delete(step)
        resolve()
      }
    },
    asked: (step, times = 1) =>
      new Promise((resolve) => {
        if (counts[step] >= times) resolve()
        else waiting.push({ step, times, resolve })
      }),
  }
}
