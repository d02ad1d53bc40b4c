type Listener = (...values: unknown[]) => unknown

/** The calls on a handle that have not been answered yet. */
export interface PendingCalls {
  /** The same promise to its caller; it counts until it settles. */
  count(answer: Promise<unknown>): Promise<unknown>
  /**
   * Makes a query that is lazy start by listening to it; it counts until a listener hears of it, and not
   * while the listener goes on.
   */
  listen(listeners: readonly unknown[], start: (listeners: readonly unknown[]) => unknown): unknown
  /** Resolves when none is pending. */
  ended(): Promise<void>
}

export function createPendingCalls(): PendingCalls {
  const ends = new Set<() => void>()
  let waiting: (() => void)[] = []

  function begin(): () => void {
    const end = (): void => {
      ends.delete(end)
      if (ends.size > 0) return
      for (const tell of waiting) tell()
      waiting = []
    }
    ends.add(end)
    return end
  }

  // Not beside it: a rejection that its caller does not handle must stay unhandled.
  const endingWith = (answer: Promise<unknown>, end: () => void): Promise<unknown> =>
    answer.then(
      (value) => {
        end()
        return value
      },
      (error) => {
        end()
        throw error
      },
    )

  return {
    count: (answer) => endingWith(answer, begin()),
    listen(listeners, start) {
      const end = begin()
      const heard = listeners.map((listener) =>
        typeof listener === 'function' ? endFirst(listener as Listener, end) : listener,
      )
      const answer = start(heard)
      return answer instanceof Promise ? endingWith(answer, end) : answer
    },
    async ended() {
      if (ends.size > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }
}

const endFirst =
  (listener: Listener, end: () => void): Listener =>
  (...values) => {
    end()
    return listener(...values)
  }
