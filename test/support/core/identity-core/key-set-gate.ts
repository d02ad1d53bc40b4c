import { setTimeout as delay } from 'node:timers/promises'

/** The answer of the core to a request for its key set. */
export type KeySetAnswer = 'serve' | 'unavailable' | 'hang-up'

/** Counts the requests for the key set, and makes them fail or delays them. */
export interface KeySetGate {
  /** Resolves after the delay, with the kind of answer to give. */
  pass(): Promise<KeySetAnswer>
  setAnswer(answer: KeySetAnswer): void
  /** From now on, delays each answer by this many milliseconds. */
  setDelay(milliseconds: number): void
  requests(): number
}

export function createKeySetGate(): KeySetGate {
  let answer: KeySetAnswer = 'serve'
  let delayMs = 0
  let requests = 0
  return {
    async pass() {
      requests += 1
      // The timer does not keep the process of a closed core alive.
      if (delayMs > 0) await delay(delayMs, undefined, { ref: false })
      return answer
    },
    setAnswer(next) {
      answer = next
    },
    setDelay(milliseconds) {
      delayMs = milliseconds
    },
    requests: () => requests,
  }
}
