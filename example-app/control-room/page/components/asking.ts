import { type Signal, useSignal } from '@preact/signals'
import { textOf } from '../api.js'

export interface Asking {
  readonly isUnderWay: Signal<boolean>
  /** Why the last thing that was asked for was not done. */
  readonly failure: Signal<string | undefined>
  /** Does nothing while something is under way. */
  readonly ask: (work: () => Promise<unknown>) => Promise<void>
}

/** What a button, a form or a choice knows of what it asks the room for. */
export function useAsking(): Asking {
  const isUnderWay = useSignal(false)
  const failure = useSignal<string | undefined>(undefined)

  async function ask(work: () => Promise<unknown>): Promise<void> {
    if (isUnderWay.value) return
    isUnderWay.value = true
    failure.value = undefined
    try {
      await work()
    } catch (error) {
      failure.value = textOf(error)
    } finally {
      isUnderWay.value = false
    }
  }

  return { isUnderWay, failure, ask }
}
