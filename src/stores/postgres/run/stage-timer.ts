/** One limit of time, which can be set anew. It holds no process open. */
export interface TimeLimit {
  /** Rejects when the time is over. */
  readonly over: Promise<never>
  /** The time is over so many ms from now. */
  set(ms: number): void
  clear(): void
}

/** `strike` is called before anybody who waits hears that the time is over. */
export function createTimeLimit(strike: () => void): TimeLimit {
  let timer: NodeJS.Timeout | undefined
  let tell: (reason: Error) => void
  const over = new Promise<never>((_resolve, reject) => {
    tell = reject
  })
  over.catch(() => {})
  const clear = (): void => clearTimeout(timer)
  return {
    over,
    set(ms) {
      clear()
      timer = setTimeout(() => {
        strike()
        tell(new Error('the time is over'))
      }, ms)
      timer.unref()
    },
    clear,
  }
}
