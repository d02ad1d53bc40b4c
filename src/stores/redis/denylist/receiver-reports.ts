import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListVersion } from '../../../verification/denylist/merge-entries.js'
import type { DenylistConnection, Unanswered } from './denylist-connection.js'
import { LEAVE, REPORT } from './scripts.js'

/** Says in Redis under which name a receiver applies which version. */
export interface Reports {
  /** @throws Unanswered when the server has refused it as one that is cut off, or did not answer. */
  reportIfDue(applied: Applied): Promise<void>
  /**
   * Takes the receiver off the list for good. It is tried for a second: who is closed while Redis is out
   * of reach for longer stays listed until it was silent for its `maxStaleSeconds`.
   */
  leave(): Promise<void>
}

interface Applied {
  readonly version: ListVersion
  readonly highestNumber: number
  /** Whether the server has to show that it is not cut off before it is believed. */
  readonly isProof: boolean
}

interface ReportsOptions {
  readonly name: string
  readonly timeoutMs: number
  readonly maxStaleSeconds: number
}

/** Between a report and a proof: a server that fails often is not written to at each look. */
const PROOF_INTERVAL_MS = 2000
const INTERVAL_MS = 5000
const LEAVE_WITHIN_MS = 1000
const LEAVE_RETRY_MS = 50

/** Such a server goes on answering questions, and nobody writes to it any more. */
const CUT_OFF = /\b(NOREPLICAS|READONLY)\b/

export function createReports(
  connection: DenylistConnection,
  { name, timeoutMs, maxStaleSeconds }: ReportsOptions,
): Reports {
  const instance = randomUUID()
  const silenceMs = String(Math.ceil(maxStaleSeconds * 1000))
  let reported: { readonly at: number; readonly version: number } | undefined
  /** A proof that came too soon after a report is asked for by the next that may. */
  let isProofOwed = false
  let wasSent = false
  let underWay: Promise<void> | undefined
  let hasLeft = false

  function isDue({ version, isProof }: Applied): boolean {
    if (reported === undefined) return true
    const ageMs = performance.now() - reported.at
    isProofOwed ||= isProof
    // Operators wait for it. There is at most one new version at each look.
    if (!isProof && reported.version !== version.number) return true
    return ageMs >= INTERVAL_MS || (isProofOwed && ageMs >= PROOF_INTERVAL_MS)
  }

  async function report({ version, highestNumber }: Applied): Promise<void> {
    const args = [instance, String(version.number), String(highestNumber), silenceMs, name]
    const sent = { at: performance.now(), version: version.number }
    wasSent = true
    try {
      await connection.ask({ script: REPORT, args, timeoutMs })
    } catch (error) {
      const { code, message } = error as Unanswered
      // One that is full, say, still tells the truth.
      if (code !== 'server' || CUT_OFF.test(message)) throw error
    }
    reported = sent
    isProofOwed = false
  }

  return {
    async reportIfDue(applied) {
      while (underWay !== undefined) {
        await underWay
        if (applied.isProof) return
      }
      if (hasLeft || !isDue(applied)) return
      underWay = report(applied).finally(() => (underWay = undefined))
      await underWay
    },
    async leave() {
      hasLeft = true
      if (!wasSent) return
      const deadline = performance.now() + LEAVE_WITHIN_MS
      const ask = (): Promise<unknown> =>
        connection.ask({ script: LEAVE, args: [instance], timeoutMs })
      let isAway = false
      while (!isAway && performance.now() < deadline) {
        isAway = await ask().then(
          () => true,
          () => sleep(LEAVE_RETRY_MS, false),
        )
      }
    },
  }
}
