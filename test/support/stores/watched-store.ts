import type { Ending, IdempotencyStore, Reservation, Run } from 'express-service-auth'

type Step = 'reserve' | 'renew' | 'settle'

export interface WatchedStore extends IdempotencyStore {
  /** The endings that were settled, in order, with their answers. */
  readonly endings: { readonly type: Ending['type']; readonly answer: boolean | 'failed' }[]
  renewals(): number
  readonly fences: number[]
  /** Makes a step fail from now on, or work again. */
  fail(step: Step, fails?: boolean): void
  /** Holds a step back from now on; the returned function lets it go on. */
  hold(step: Step): () => void
  /** Resolves once a step that is held back, or has been done, was asked for so often. */
  asked(step: Step, times?: number): Promise<void>
}

/** A store in front of another, which a test can watch, hold back and break. */
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
      let letGo = (): void => {}
      gates.set(step, new Promise<void>((resolve) => (letGo = resolve)))
      return () => {
        gates.delete(step)
        letGo()
      }
    },
    asked: (step, times = 1) =>
      new Promise((resolve) => {
        if (counts[step] >= times) resolve()
        else waiting.push({ step, times, resolve })
      }),
  }
}
