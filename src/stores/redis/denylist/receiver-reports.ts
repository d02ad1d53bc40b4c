import { randomUUID } from 'node:crypto'
import type { ListVersion } from '../../../verification/denylist/merge-entries.js'
import type { NotConfirmed } from '../connection/redis-connection.js'
import { LEAVE, REPORT, type RunOnList } from './scripts.js'

/** Reports to Redis which version a receiver applies, under its name. */
export interface Reports {
  /** @throws NotConfirmed if the server refused the write because it is isolated, or did not reply. */
  reportIfDue(applied: Applied): Promise<void>
  /**
   * Removes the receiver permanently, with retries for one second. If Redis cannot be reached for longer,
   * the receiver stays listed until it has been silent for its `maxStaleSeconds`.
   */
  leave(): Promise<void>
}

interface Applied {
  readonly version: ListVersion
  readonly highestNumber: number
  /** Whether the server must prove with a write that it is not isolated. */
  readonly isProof: boolean
}

interface ReportsOptions {
  readonly name: string
  readonly timeoutMs: number
  readonly maxStaleSeconds: number
}

const INTERVAL_MS = 5000
const LEAVE_WITHIN_MS = 1000

/** Errors of a server that still answers reads, but no longer receives writes. */
const ISOLATED_SERVER = /\b(NOREPLICAS|READONLY)\b/

export function createReports(
  runOnList: RunOnList,
  { name, timeoutMs, maxStaleSeconds }: ReportsOptions,
): Reports {
  const instance = randomUUID()
  const maxSilenceMs = String(Math.ceil(maxStaleSeconds * 1000))
  let reported: { readonly at: number; readonly version: number } | undefined
  let hasSentReport = false
  let inProgress: Promise<void> | undefined
  let hasLeft = false

  function isDue({ version, isProof }: Applied): boolean {
    if (reported === undefined || isProof) return true
    // Operators wait for the report of a new version. Each poll finds at most one, which limits the writes.
    if (reported.version !== version.number) return true
    return performance.now() - reported.at >= INTERVAL_MS
  }

  async function report({ version, highestNumber }: Applied): Promise<void> {
    const args = [instance, String(version.number), String(highestNumber), maxSilenceMs, name]
    const sent = { at: performance.now(), version: version.number }
    hasSentReport = true
    try {
      await runOnList({ script: REPORT, args, timeoutMs })
    } catch (error) {
      const { code, message } = error as NotConfirmed
      // A server with another error, such as one that is full, still returns the current list.
      if (code !== 'server' || ISOLATED_SERVER.test(message)) throw error
    }
    reported = sent
  }

  return {
    async reportIfDue(applied) {
      while (inProgress !== undefined) {
        await inProgress
        // Any report is a proof.
        if (applied.isProof) return
      }
      if (hasLeft || !isDue(applied)) return
      inProgress = report(applied).finally(() => (inProgress = undefined))
      await inProgress
    },
    async leave() {
      hasLeft = true
      if (!hasSentReport) return
      await runOnList({ script: LEAVE, args: [instance], timeoutMs: LEAVE_WITHIN_MS }).catch(
        () => {},
      )
    },
  }
}
