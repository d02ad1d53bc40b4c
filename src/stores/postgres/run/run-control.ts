import { advance, type Life, type LifeEvent } from './run-stage.js'

/** How far a run has come, and how much time it has left. */
export interface Lifeline {
  readonly life: Life
  /** Aborts when the run has been given up. */
  readonly signal: AbortSignal
  happen(event: LifeEvent): void
  /** The stage that is going on begins now, and may take so many ms. */
  limit(ms: number): void
  /** Rejects when the time is over. */
  within<T>(work: Promise<T>): Promise<T>
  /** No more time runs. */
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
    // Made when a handler first asks for it: few do.
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

/** One limit of time, which can be set again. It holds no process open. */
interface TimeLimit {
  /** Rejects when the time is over. */
  readonly over: Promise<never>
  /** The time is over so many ms from now. */
  set(ms: number): void
  clear(): void
}

/** `strike` is called before anybody who waits hears that the time is over. */
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
