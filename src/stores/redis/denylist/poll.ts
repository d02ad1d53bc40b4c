import { AsyncResource } from 'node:async_hooks'
import type { DenylistFailureCode } from '../../../base/decision/denylist-event.js'
import {
  currentMoment,
  isSameVersion,
  type Life,
  type Moment,
} from '../../../verification/denylist/list-state.js'
import type { HeldList } from '../../../verification/denylist/local-denylist.js'
import type { ListVersion } from '../../../verification/denylist/merge-entries.js'
import { NotConfirmed } from '../connection/redis-deadline.js'
import type { DenylistConnection } from './denylist-connection.js'
import type { Reports } from './receiver-reports.js'
import { Malformed, readList, readPoll } from './rows.js'
import { POLL, READ } from './scripts.js'

/** Polls the list. */
export interface Poll {
  /** Starts polling, unless it has started. */
  begin(): void
  /** Resolves after the current poll, or the next one. */
  looked(): Promise<void>
  close(): void
}

interface PollOptions {
  readonly held: HeldList
  readonly reports: Reports
  readonly pollMs: number
  readonly timeoutMs: number
}

interface ReadVersion {
  readonly version: ListVersion
}

const READ_TIMEOUT_MS = 500
/** A damaged list may be repaired without a new version. It may be long, so not every poll reads it. */
const MALFORMED_PAUSE_MS = 2000

/**
 * Runs one poll at a time: reads the version, and the list if the version has changed, then sends a report
 * if one is due. The timer never holds the process open, and runs in the async context of this call.
 */
export function createPoll(
  connection: DenylistConnection,
  { held, reports, pollMs, timeoutMs }: PollOptions,
): Poll {
  const waiting: (() => void)[] = []
  let hasBegun = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let malformed: { readonly version: ListVersion; readonly at: number } | undefined

  async function look(): Promise<void> {
    const beganAt = performance.now()
    try {
      await readWhatIsNew()
      void report()
    } catch (error) {
      fail(error)
    }
    for (const resolve of waiting.splice(0)) resolve()
    if (isClosed) return
    timer = setTimeout(() => void look(), Math.max(0, beganAt + pollMs - performance.now()))
    timer.unref()
  }

  /** The next poll does not wait for the report, because that would delay new entries. */
  async function report(): Promise<void> {
    if (isClosed) return
    await reports.reportIfDue({ ...held.life, isProof: false }).catch(fail)
  }

  function fail(error: unknown): void {
    if (!isClosed) held.apply({ type: 'failed', at: currentMoment(), code: codeOf(error) })
  }

  async function readWhatIsNew(): Promise<void> {
    const askedAt = currentMoment()
    const polled = readPoll(await connection.ask({ script: POLL, timeoutMs }))
    const { life } = held
    const isFirst = life.confirmedAt === undefined
    const isNew = isFirst || !isSameVersion(polled.version, life.version)
    const list = isNew ? await readAll(polled.version) : undefined
    if (isFirst || life.trouble !== undefined) await reports.reportIfDue(proofOf(life, polled))
    if (isClosed) return
    if (list !== undefined) held.apply({ type: 'read', at: currentMoment(), ...list })
    else held.apply({ type: 'unchanged', at: currentMoment(), askedAt, ...polled })
  }

  async function readAll(version: ListVersion) {
    const isPause =
      malformed !== undefined &&
      isSameVersion(malformed.version, version) &&
      performance.now() - malformed.at < MALFORMED_PAUSE_MS
    if (isPause) throw new Malformed('the list')
    const askedAt: Moment = currentMoment()
    const reply = await connection.ask({ script: READ, timeoutMs: READ_TIMEOUT_MS })
    try {
      const list = readList(reply)
      malformed = undefined
      return { askedAt, list }
    } catch (error) {
      malformed = { version, at: performance.now() }
      throw error
    }
  }

  const lookInOwnContext = AsyncResource.bind((): void => void look())

  return {
    begin() {
      if (hasBegun || isClosed) return
      hasBegun = true
      lookInOwnContext()
    },
    looked() {
      if (isClosed) return Promise.resolve()
      return new Promise((resolve) => waiting.push(resolve))
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      for (const resolve of waiting.splice(0)) resolve()
      held.apply({ type: 'failed', at: currentMoment(), code: 'closed' })
    },
  }
}

/**
 * Requests a write as a proof, because an isolated master answers reads but refuses writes. The list that
 * was just read is not applied yet, and will not be if this write gets no reply.
 */
const proofOf = ({ version: applied, highestNumber }: Life, { version }: ReadVersion) => ({
  version: applied,
  highestNumber: Math.max(highestNumber, version.number),
  isProof: true,
})

const codeOf = (error: unknown): DenylistFailureCode =>
  error instanceof NotConfirmed ? error.code : 'malformed'
