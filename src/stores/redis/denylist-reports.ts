import { randomUUID } from 'node:crypto'
import type { Life } from '../../denylist/life.js'
import type { DenylistConnection, Unanswered } from './denylist-connection.js'
import { LEAVE, REPORT } from './denylist-scripts.js'

/** Says in Redis under which name a receiver applies which version. */
export interface Reports {
  /** Whether the server has refused the last one because it is cut off from its replicas or is one. */
  readonly isRefused: boolean
  /** @throws Unanswered when it was refused, or the server did not answer. */
  reportIfDue(life: Life): Promise<void>
  /** Takes the receiver off the list, if the connection is open. */
  leave(): Promise<void>
}

interface ReportsOptions {
  readonly name: string
  readonly timeoutMs: number
  readonly maxStaleSeconds: number
}

const LEAST_INTERVAL_MS = 2000
const INTERVAL_MS = 5000

/** Such a server goes on answering questions, and nobody writes to it any more. */
const CUT_OFF = /\b(NOREPLICAS|READONLY)\b/

export function createReports(
  connection: DenylistConnection,
  { name, timeoutMs, maxStaleSeconds }: ReportsOptions,
): Reports {
  const instance = randomUUID()
  const silenceMs = String(maxStaleSeconds * 1000)
  let reported: { readonly at: number; readonly version: Life['version'] } | undefined
  let isRefused = false

  function isDue({ version }: Life): boolean {
    if (isRefused || reported === undefined) return true
    const ageMs = performance.now() - reported.at
    const hasChanged = reported.version.number !== version.number
    return ageMs >= INTERVAL_MS || (hasChanged && ageMs >= LEAST_INTERVAL_MS)
  }

  return {
    get isRefused() {
      return isRefused
    },
    async reportIfDue(life) {
      if (!isDue(life)) return
      const { version, highestNumber } = life
      const args = [instance, String(version.number), String(highestNumber), silenceMs, name]
      const sent = { at: performance.now(), version }
      try {
        await connection.ask({ script: REPORT, args, timeoutMs })
        isRefused = false
      } catch (error) {
        const { code, message } = error as Unanswered
        isRefused = code === 'server' && CUT_OFF.test(message)
        // One that is full, say, still tells the truth.
        if (isRefused || code !== 'server') throw error
      }
      reported = sent
    },
    async leave() {
      if (reported === undefined || !connection.isOpen()) return
      await connection.ask({ script: LEAVE, args: [instance], timeoutMs }).catch(() => {})
    },
  }
}
