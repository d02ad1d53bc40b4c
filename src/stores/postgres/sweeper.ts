import { AsyncResource } from 'node:async_hooks'
import { announcePostgres } from '../../base/decision/postgres-event.js'
import { sqlStateOf } from './sql-state.js'

/** Sweeps from time to time. */
export interface Sweeper {
  /** No sweep begins any more. */
  close(): void
}

interface SweeperOptions {
  /** Resolves to the number of rows that are gone. */
  sweep(): Promise<number>
  readonly everySeconds: number
}

/** Processes that start together sweep apart: the wait is longer or shorter by up to a quarter. */
const JITTER = 0.25

/**
 * Sweeps again and again, the first time when the first wait is over. The timer never holds the process
 * open, and runs in the async context in which this was called.
 */
export function startSweeper({ sweep, everySeconds }: SweeperOptions): Sweeper {
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  async function turn(): Promise<void> {
    const startedAt = performance.now()
    try {
      const deleted = await sweep()
      announcePostgres(() => ({
        type: 'swept',
        deleted,
        durationMs: performance.now() - startedAt,
      }))
    } catch (error) {
      const sqlState = sqlStateOf(error)
      announcePostgres(() => ({
        type: 'sweep_failed',
        ...(sqlState !== undefined && { sqlState }),
      }))
    }
    wait()
  }

  // Whoever sweeps may have changed the context.
  const wait = AsyncResource.bind((): void => {
    if (isClosed) return
    const waitMs = everySeconds * 1000 * (1 + JITTER * (2 * Math.random() - 1))
    timer = setTimeout(() => void turn(), waitMs)
    timer.unref()
  }, 'express-service-auth:sweep')

  wait()
  return {
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
