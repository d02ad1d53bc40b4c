import { setTimeout as delay } from 'node:timers/promises'

/** How the core answers whoever asks for its key set. */
export type KeySetAnswer = 'serve' | 'unavailable' | 'hang-up'

/** What stands before the key set: it counts, and lets the key set fail or answer late. */
export interface KeySetGate {
  /** Resolves once the request is to be answered, and says how. */
  pass(): Promise<KeySetAnswer>
  setAnswer(answer: KeySetAnswer): void
  /** Milliseconds by which each answer comes late, from now on. */
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
      // A core that is closed meanwhile waits for nobody.
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
