/** Far longer than any such work. The timer does nothing. */
const INTERVAL_MS = 60_000

/**
 * Holds the process open until the work is done. Between two attempts there is no connection, so a
 * program without other pending work would exit without a result.
 */
export async function heldOpen<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, INTERVAL_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
