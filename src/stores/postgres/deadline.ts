/**
 * Settles as `coming` does if that takes at most `timeoutMs`, otherwise rejects with `tooLate()`. A
 * later value goes to `late`; a later failure is ignored.
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
 * How long a caller waits for a rollback, in ms. The rollback waits for the statement before it, which
 * may hang and keeps its locks until the connection is destroyed.
 */
export const ROLLBACK_MS = 1000
