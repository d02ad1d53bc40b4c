type Listener = (...values: unknown[]) => unknown

/** Gets to know how the calls on a handle end. */
export interface CallObserver {
  succeeded(): void
  failed(error: unknown): void
  /** A call came after the answer, and was refused. */
  refused(): void
}

export const IGNORE: CallObserver = { succeeded: () => {}, failed: () => {}, refused: () => {} }

/** The calls on a handle that have not been answered yet. */
export interface PendingCalls {
  /** The same promise to its caller; it counts until it settles. */
  count(answer: Promise<unknown>): Promise<unknown>
  /**
   * Makes a query that is lazy start by listening to it; it counts until a listener hears of it, and not
   * while the listener goes on.
   */
  listen(listening: Listening, start: (listeners: readonly unknown[]) => unknown): unknown
  /** Resolves when none is pending. */
  ended(): Promise<void>
}

interface Listening {
  /** `then`, `catch` or `finally`. */
  readonly name: PropertyKey
  readonly listeners: readonly unknown[]
}

export function createPendingCalls(observer: CallObserver): PendingCalls {
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
  const endingWith = (
    answer: Promise<unknown>,
    end: () => void,
    { succeeded, failed }: Omit<CallObserver, 'refused'>,
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
    count: (answer) => endingWith(answer, begin(), observer),
    listen({ name, listeners }, start) {
      const end = begin()
      let { failed } = observer
      const hear = (listener: unknown, observe: (value: unknown) => void): unknown => {
        if (typeof listener !== 'function') return listener
        return observeFirst(listener as Listener, (value) => {
          observe(value)
          end()
        })
      }
      const heard = [...listeners]
      if (name === 'then') heard[0] = hear(heard[0], observer.succeeded)
      const last = name === 'then' ? 1 : 0
      heard[last] = hear(heard[last], name === 'finally' ? () => {} : observer.failed)
      // What follows a listener that was told of the failure is no answer of the database.
      if (name !== 'finally' && typeof heard[last] === 'function') failed = () => {}
      const answer = start(heard)
      const rest = { succeeded: () => {}, failed }
      return answer instanceof Promise ? endingWith(answer, end, rest) : answer
    },
    async ended() {
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
