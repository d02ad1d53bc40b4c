import { channel } from 'node:diagnostics_channel'
import type { Ledger } from './journaled-state.js'
import type { Work } from './migration-context.js'
import type { MigrationProgress } from './progress.js'
import { countsOf, sizeOf } from './state/run-state.js'

const migrations = channel('express-service-auth:migration')

/** Tells what the journal has just learnt. What an observer throws or rejects with has no effect. */
export function progressTeller(
  { state }: Ledger,
  observe: ((event: MigrationProgress) => unknown) | undefined,
): Work['tell'] {
  return (type, about) => {
    if (observe === undefined && !migrations.hasSubscribers) return
    const event: MigrationProgress = {
      by: 'migration',
      type,
      counts: countsOf(state),
      identities: sizeOf(state),
      ...about,
    }
    tellObserver(observe, event)
    if (migrations.hasSubscribers) migrations.publish(event)
  }
}

function tellObserver(
  observe: ((event: MigrationProgress) => unknown) | undefined,
  event: MigrationProgress,
): void {
  try {
    const returned = observe?.(event)
    if (typeof returned === 'object') Promise.resolve(returned).catch(ignore)
  } catch {
    // The run goes on as if nobody listened.
  }
}

function ignore(): void {}
