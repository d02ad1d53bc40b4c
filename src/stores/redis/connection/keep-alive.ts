/** Far longer than any work that is waited for: the timer does nothing. */
const INTERVAL_MS = 60_000

/**
 * Holds the process open until the work is done: between two tries there is no connection, and a
 * program that waits for nothing else would end without an answer.
 */
export async function heldOpen<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, INTERVAL_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
