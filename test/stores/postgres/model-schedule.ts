import { vi } from 'vitest'

export const CHOICES = 64
/** A choice of this value waits for the next timer, whatever else could happen now. */
const NEXT_TIMER = 63
/** A choice from this value on lets a short time pass, in which only pauses end. */
const SHORT_TIME = 60
const SHORT_MS = 50
/** A choice from this value on makes what could happen now wait for long. */
const IS_SLOW = 54
const SLOW_STEPS = 30

/** The microtasks of the code under test are done before the next step. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Step {
  readonly label: string
  readonly isReady: () => boolean
  readonly happen: () => void
  /** Goes first only where nothing else can happen before this step. */
  notBefore: number
}

/** Everything that could happen next, of which `choices` picks one at a time; then the oldest is next. */
export class Schedule {
  readonly happened: string[] = []
  readonly #steps: Step[] = []
  #choices: number[]

  constructor(choices: readonly number[]) {
    this.#choices = [...choices]
  }

  /** From now on the oldest is next. */
  goInOrder(): void {
    this.#choices = []
  }

  later(label: string, happen: () => void, isReady: () => boolean = () => true): void {
    this.#steps.push({ label, isReady, happen, notBefore: 0 })
  }

  /** `false` when nothing can happen any more, not even with time. */
  async step(): Promise<boolean> {
    await settled()
    const choice = this.#choices.shift() ?? 0
    const ready = this.#ready()
    const step = ready[choice % Math.max(1, ready.length)]
    if (step === undefined || choice >= SHORT_TIME) {
      if (step === undefined && vi.getTimerCount() === 0) return false
      this.happened.push('time passes')
      if (step === undefined || choice === NEXT_TIMER) vi.advanceTimersToNextTimer()
      else vi.advanceTimersByTime(SHORT_MS)
    } else if (choice >= IS_SLOW && ready.length > 1) {
      step.notBefore = this.happened.length + SLOW_STEPS
    } else {
      this.#steps.splice(this.#steps.indexOf(step), 1)
      this.happened.push(step.label)
      step.happen()
    }
    return true
  }

  #ready(): readonly Step[] {
    const ready = this.#steps.filter((step) => step.isReady())
    const soon = ready.filter(({ notBefore }) => notBefore <= this.happened.length)
    return soon.length > 0 ? soon : ready
  }
}
