import { advance, type Life, type LifeEvent } from './run-stage.js'

/** The stage of a run, and its timer. */
export interface Lifeline {
  readonly life: Life
  /** Aborts when the run is given up. */
  readonly signal: AbortSignal
  happen(event: LifeEvent): void
  /** Restarts the timer: the stage may take `ms`. */
  limit(ms: number): void
  /** Rejects if the time limit is reached first. */
  within<T>(work: Promise<T>): Promise<T>
  /** Stops the timer. */
  end(): void
}

export function createLifeline(): Lifeline {
  let life: Life = { at: 'opening' }
  let controller: AbortController | undefined
  const time = createTimeLimit(() => happen({ type: 'struck' }))

  function happen(event: LifeEvent): void {
    life = advance(life, event)
    if (life.at === 'given_up') controller?.abort()
  }

  return {
    get life() {
      return life
    },
    // Created lazily, because few handlers use it.
    get signal() {
      controller ??= new AbortController()
      if (life.at === 'given_up') controller.abort()
      return controller.signal
    },
    happen,
    limit: time.set,
    within: (work) => Promise.race([work, time.over]),
    end: time.clear,
  }
}

/** A time limit that can be set again. It does not keep the process alive. */
interface TimeLimit {
  /** Rejects when the limit is reached. */
  readonly over: Promise<never>
  /** Sets the limit to `ms` from now. */
  set(ms: number): void
  clear(): void
}

/** `strike` is called before `over` rejects. */
function createTimeLimit(strike: () => void): TimeLimit {
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
