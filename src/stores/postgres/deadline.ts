/**
 * What comes within the time. What comes later goes to `late`, and a later failure nowhere; the time
 * being over, `tooLate` tells what to reject with.
 */
export function within<T>(
  timeoutMs: number,
  coming: PromiseLike<T>,
  over: { readonly tooLate: () => Error; readonly late?: (value: T) => void },
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
      reject(over.tooLate())
    }, timeoutMs)
    timer.unref()
    coming.then(
      (value) => {
        clearTimeout(timer)
        if (isOver) over.late?.(value)
        else resolve(value)
      },
      (reason) => {
        clearTimeout(timer)
        reject(reason)
      },
    )
  })
}

export function noConnection(acquireMs: number): Error {
  return new Error(`No connection to Postgres came within ${acquireMs} ms.`)
}

export function noAnswer(timeoutMs: number): Error {
  return new Error(`Postgres did not answer within ${timeoutMs} ms.`)
}

/**
 * How long a caller waits for a rollback, in ms. It stands behind a statement that may hang, and holds
 * its locks until the connection is destroyed.
 */
export const ROLLBACK_MS = 1000
