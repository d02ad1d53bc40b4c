import type { MigrationProgress } from '../../migration/run/migration.js'

/** The progress of one phase of a run. */
export interface Measure {
  readonly phase: 'staging' | 'waiting' | 'reconciling'
  readonly done: number
  readonly total: number
}

/** Returns `undefined` for an event that happens once. */
export function measure({
  type,
  counts,
  identities,
  rows,
}: MigrationProgress): Measure | undefined {
  switch (type) {
    case 'batch_staged':
      return { phase: 'staging', done: identities - counts.pending, total: identities }
    case 'waiting': {
      const left = (rows?.new ?? 0) + (rows?.processing ?? 0)
      // The core also counts foreign rows.
      const total = Math.max(counts.staged, left)
      return { phase: 'waiting', done: total - left, total }
    }
    case 'reconciling': {
      const { reconciled, missing, differs, shared, accepted, staged } = counts
      const done = reconciled + missing + differs + shared + accepted
      return { phase: 'reconciling', done, total: done + staged }
    }
    default:
      return undefined
  }
}
