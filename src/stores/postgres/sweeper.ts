import { AsyncResource } from 'node:async_hooks'
import { announcePostgres } from '../../base/decision/postgres-event.js'
import { sqlStateOf } from './sql-state.js'

export interface Sweeper {
  /** Stops sweeping; a sweep in progress continues. */
  close(): void
}

interface SweeperOptions {
  /** Resolves to the number of deleted rows. */
  sweep(): Promise<number>
  readonly everySeconds: number
}

/** The wait varies by up to a quarter, so that processes that start together sweep at different times. */
const JITTER = 0.25

/**
 * Sweeps repeatedly, the first time after one wait. The timer does not keep the process alive, and runs
 * in the async context of the caller.
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

  // `sweep` may have changed the async context.
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
