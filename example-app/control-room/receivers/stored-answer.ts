import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startProgram } from './start-program.js'

/** An answer as a visitor gives it: JSON, or nothing. */
export interface GivenAnswer {
  readonly status: number
  readonly body: string
}

/** Milliseconds: to compile it takes some seconds on a busy machine. */
const ANSWER_WITHIN_MS = 60_000

const PROGRAM = fileURLToPath(new URL('./answer/main.ts', import.meta.url))

/**
 * The answer in the form in which the package keeps it. Only a handler that answers under a key makes
 * that form: one does so in a process of its own, whose events nobody takes for those of the receivers.
 */
export async function storedAnswer(
  answer: GivenAnswer,
  program: string = PROGRAM,
): Promise<Uint8Array> {
  const child = startProgram(program)
  try {
    child.send(answer)
    const gone = once(child, 'close').then(() => {
      throw new Error('the process that makes an answer has ended')
    })
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const [kept] = await Promise.race([once(child, 'message', { signal }), gone])
    gone.catch(() => undefined)
    return kept as Uint8Array
  } finally {
    child.kill('SIGKILL')
  }
}
