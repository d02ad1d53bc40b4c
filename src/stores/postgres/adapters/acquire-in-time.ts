import { noConnection } from '../deadline.js'

/**
 * Gives `use` a connection or a transaction, and takes it back when `use` has settled. When `abandoned`
 * aborts, nobody waits for it any more: a library that can destroys the connection.
 */
export type Open<Handle> = <R>(
  use: (handle: Handle) => Promise<R>,
  abandoned?: AbortSignal,
) => Promise<R>

/** From now on the caller waits this long for the end, and then gets the reason. */
type Bound = (ms: number, reason: unknown) => void

/**
 * Waits for `open` no longer than `acquireMs`, whatever the pool of the library does: when its connection
 * comes too late, `use` is not called. Past its bound the library goes on, alone, unless it heeds the signal.
 */
export function openInTime<Handle, R>(
  open: Open<Handle>,
  acquireMs: number,
  use: (handle: Handle, bound: Bound) => Promise<R>,
): Promise<R> {
  return new Promise((resolve, reject) => {
    let state: 'waiting' | 'used' | 'too late' = 'waiting'
    const abandoned = new AbortController()
    const abandon = (reason: unknown): void => {
      reject(reason)
      abandoned.abort()
    }
    let timer = setTimeout(() => {
      state = 'too late'
      abandon(noConnection(acquireMs))
    }, acquireMs)
    timer.unref()
    const bound: Bound = (ms, reason) => {
      clearTimeout(timer)
      timer = setTimeout(abandon, ms, reason).unref()
    }
    open(async (handle) => {
      if (state === 'too late') throw noConnection(acquireMs)
      if (state === 'used') throw new Error('The library has called back a second time')
      state = 'used'
      clearTimeout(timer)
      return await use(handle, bound)
    }, abandoned.signal)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
