type Listener = (...values: unknown[]) => unknown

/** Callbacks for the results of the calls on a transaction's proxy. */
export interface PendingCallObserver {
  succeeded(): void
  failed(error: unknown): void
  /** Called when a call after the answer is refused. */
  refused(): void
}

export const IGNORE: PendingCallObserver = {
  succeeded: () => {},
  failed: () => {},
  refused: () => {},
}

interface Listening {
  /** `then`, `catch` or `finally`. */
  readonly name: PropertyKey
  readonly listeners: readonly unknown[]
}

/** The calls on a transaction's proxy that have not been answered yet. */
export function createPendingCalls(observer: PendingCallObserver) {
  const ends = new Set<() => void>()
  let waiting: (() => void)[] = []

  function begin(): () => void {
    const end = (): void => {
      ends.delete(end)
      if (ends.size > 0) return
      for (const resolve of waiting) resolve()
      waiting = []
    }
    ends.add(end)
    return end
  }

  // Returns the derived promise, because a rejection that the caller does not handle must stay unhandled.
  const endingWith = (
    answer: Promise<unknown>,
    end: () => void,
    { succeeded, failed }: Omit<PendingCallObserver, 'refused'>,
  ): Promise<unknown> =>
    answer.then(
      (value) => {
        succeeded()
        end()
        return value
      },
      (error) => {
        failed(error)
        end()
        throw error
      },
    )

  return {
    /** Counts a call until its answer settles. Returns a promise that settles in the same way. */
    count: (answer: Promise<unknown>): Promise<unknown> => endingWith(answer, begin(), observer),
    /**
     * Starts a lazy query by adding listeners to it. Counts the query until a listener is called, but not
     * while that listener runs.
     */
    listen(
      { name, listeners }: Listening,
      start: (listeners: readonly unknown[]) => unknown,
    ): unknown {
      const end = begin()
      let { failed } = observer
      const observed = (listener: unknown, observe: (value: unknown) => void): unknown => {
        if (typeof listener !== 'function') return listener
        return observeFirst(listener as Listener, (value) => {
          observe(value)
          end()
        })
      }
      const started = [...listeners]
      if (name === 'then') started[0] = observed(started[0], observer.succeeded)
      const last = name === 'then' ? 1 : 0
      started[last] = observed(started[last], name === 'finally' ? () => {} : observer.failed)
      // After a listener has received the failure, a later rejection is not the database's answer.
      if (name !== 'finally' && typeof started[last] === 'function') failed = () => {}
      const answer = start(started)
      const rest = { succeeded: () => {}, failed }
      return answer instanceof Promise ? endingWith(answer, end, rest) : answer
    },
    /** Resolves when no call is pending. */
    async allSettled(): Promise<void> {
      if (ends.size > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }
}

const observeFirst =
  (listener: Listener, observe: (value: unknown) => void): Listener =>
  (...values) => {
    observe(values[0])
    return listener(...values)
  }
