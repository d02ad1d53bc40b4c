import { AsyncResource } from 'node:async_hooks'
import type { DenylistFailureCode } from '../../../base/decision/store-event.js'
import {
  isSameVersion,
  type ListState,
  readClocks,
} from '../../../verification/denylist/list-state.js'
import type { LocalDenylist } from '../../../verification/denylist/local-denylist.js'
import type { ListVersion, ReadList } from '../../../verification/denylist/merge-entries.js'
import { NotConfirmed, startRedisCall, untilDeadline } from '../connection/redis-connection.js'
import type { Reports } from './receiver-reports.js'
import { MalformedReply, readList, readPoll } from './rows.js'
import { POLL, READ, type RunOnList } from './scripts.js'

/** Polls the list. */
interface Poll {
  /** Starts polling, unless it has started. */
  start(): void
  /** Resolves when the poll in progress ends; if there is none, when the next one does. */
  nextPoll(): Promise<void>
  /** As `LiveDenylist.catchUp`. */
  catchUp(): Promise<void> | undefined
  close(): void
}

interface PollOptions {
  readonly local: LocalDenylist
  readonly reports: Reports
  readonly pollMs: number
  readonly timeoutMs: number
}

const READ_TIMEOUT_MS = 500
/** With `pollMs`, more than passes between two polls of a process that runs. */
const FROZEN_MS = 1000
/** The pause after a damaged list, which may be long: each poll reads it, because a repair has no new version. */
const MALFORMED_PAUSE_MS = 750

/**
 * Runs one poll at a time: reads the version, and the list if the version has changed, then sends a report
 * if one is due. The timer never holds the process open, and runs in the async context of this call.
 */
export function createPoll(
  runOnList: RunOnList,
  { local, reports, pollMs, timeoutMs }: PollOptions,
): Poll {
  const waiters: (() => void)[] = []
  let hasStarted = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let lastAttempt = 0
  let sentWallMs = 0
  let sentMonotonicMs = 0
  let catchingUp: Promise<void> | undefined

  /** Returns whether the list is confirmed. A poll that is still under way no longer counts. */
  async function poll(replyTimeoutMs: number): Promise<boolean> {
    clearTimeout(timer)
    lastAttempt += 1
    const attempt = lastAttempt
    const isCurrent = (): boolean => !isClosed && attempt === lastAttempt
    const startedAt = performance.now()
    sentMonotonicMs = startedAt
    sentWallMs = Date.now()
    let isConfirmed = false
    let pauseMs = pollMs
    try {
      await readChanges(replyTimeoutMs, isCurrent)
      isConfirmed = true
      if (isCurrent()) void report()
    } catch (error) {
      if (error instanceof MalformedReply) pauseMs = MALFORMED_PAUSE_MS
      if (isCurrent()) fail(error)
    }
    if (!isCurrent()) return isConfirmed
    for (const resolve of waiters.splice(0)) resolve()
    timer = setTimeout(continuePolling, Math.max(0, startedAt + pauseMs - performance.now()))
    timer.unref()
    return isConfirmed
  }

  const continuePolling = (): void => void (catchUp() ?? poll(timeoutMs))

  /** Also called before each poll: if that were sent first, a decision before its reply would not wait. */
  function catchUp(): Promise<void> | undefined {
    if (catchingUp !== undefined) return catchingUp
    if (!hasStarted || isClosed || !wasFrozen()) return undefined
    catchingUp = startCatchingUp()
    return catchingUp
  }

  /** Whether the last poll began so long ago, by either clock, that the process or the machine has stood still. */
  function wasFrozen(): boolean {
    const longestMs = pollMs + FROZEN_MS
    return Date.now() - sentWallMs > longestMs || performance.now() - sentMonotonicMs > longestMs
  }

  /** Polls at once. The connection may be dead without a sign, so half of the time is left for another one. */
  async function pollAfterFreeze(): Promise<void> {
    if (await poll(timeoutMs / 2)) return
    if (!isClosed) await poll(timeoutMs)
  }

  const startCatchingUp = AsyncResource.bind(async (): Promise<void> => {
    try {
      await untilDeadline(pollAfterFreeze(), startRedisCall(timeoutMs))
    } catch {
      // The list counts as before; the polls go on.
    } finally {
      catchingUp = undefined
    }
  })

  /** The next poll does not wait for the report, because that would delay new entries. */
  async function report(): Promise<void> {
    if (isClosed) return
    await reports.reportIfDue({ ...local.state, isProof: false }).catch(fail)
  }

  function fail(error: unknown): void {
    if (!isClosed) local.apply({ type: 'failed', at: readClocks(), code: failureCode(error) })
  }

  async function readChanges(replyTimeoutMs: number, isCurrent: () => boolean): Promise<void> {
    const requestedAt = readClocks()
    const reply = await runOnList({ script: POLL, timeoutMs: replyTimeoutMs })
    const polled = readPoll(reply)
    const { state } = local
    const isFirst = state.confirmedAt === undefined
    const isNew = isFirst || !isSameVersion(polled.version, state.version)
    const change = isNew
      ? ({ type: 'read', list: await readAll() } as const)
      : ({ type: 'unchanged', serverSeconds: polled.serverSeconds } as const)
    if (isFirst || state.lastFailure !== undefined)
      await reports.reportIfDue(proofOf(state, polled.version))
    if (isCurrent()) local.apply({ ...change, at: readClocks(), requestedAt })
  }

  const readAll = async (): Promise<ReadList> =>
    readList(await runOnList({ script: READ, timeoutMs: READ_TIMEOUT_MS }))

  const startPolling = AsyncResource.bind((): void => void poll(timeoutMs))

  return {
    start() {
      if (hasStarted || isClosed) return
      hasStarted = true
      startPolling()
    },
    nextPoll() {
      if (isClosed) return Promise.resolve()
      return new Promise((resolve) => waiters.push(resolve))
    },
    catchUp,
    close() {
      isClosed = true
      clearTimeout(timer)
      for (const resolve of waiters.splice(0)) resolve()
      local.apply({ type: 'failed', at: readClocks(), code: 'closed' })
    },
  }
}

/**
 * Returns a report that proves by its write that the master is not isolated: an isolated one answers reads, but
 * refuses writes. Reports the version applied so far, because the list just read is applied only after this report.
 */
const proofOf = ({ version, highestNumber }: ListState, latest: ListVersion) => ({
  version,
  highestNumber: Math.max(highestNumber, latest.number),
  isProof: true,
})

const failureCode = (error: unknown): DenylistFailureCode =>
  error instanceof NotConfirmed ? error.code : 'malformed'
