import { setTimeout as sleep } from 'node:timers/promises'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import type { DenylistReceiver } from '../../stores/redis/denylist/operations.js'
import type { CommandResult } from '../frame/command.js'
import { type Report, unreachableError } from '../frame/command-failure.js'
import { formatExactDuration } from '../frame/duration.js'
import { untilInterrupted } from '../frame/interrupt.js'
import type { DenylistAccess } from './denylist-access.js'

/** How many receivers apply a version of the list. `missing` names the others. */
interface ReceiverProgress {
  readonly applied: number
  readonly total: number
  readonly missing: readonly string[]
  /**
   * Milliseconds from the reply to the write until the last read of the receivers' reports. A receiver
   * reports a version only after it has applied it, so this is an upper bound.
   */
  readonly tookMs: number
}

const POLL_MS = 100

interface AwaitedWrite {
  readonly version: number
  readonly waitMs: number
  /** The report on the write, in case the receivers can no longer be queried. */
  readonly written: Report
}

/**
 * Waits until all receivers apply the version, at most `waitMs`. It also waits if there is no receiver:
 * after Redis has lost its data, a running receiver reports itself again within seconds.
 * Ctrl-C or SIGTERM ends only the wait: the command still shows the write, and which receivers
 * apply it.
 *
 * @throws CommandFailure (3) with the report on the write, if the receivers cannot be queried.
 */
export async function awaitReceivers(
  access: DenylistAccess,
  awaited: AwaitedWrite,
): Promise<CommandResult> {
  const progress = await untilInterrupted((signal) => untilApplied(access, awaited, signal))
  const { applied, total, missing, tookMs } = progress
  const { lines, json } = awaited.written
  return {
    exitCode: isComplete(progress) ? 0 : 1,
    lines: [...lines, ...progressLines(progress)],
    json: { ...json, receivers: { applied, of: total, missing, tookMs } },
  }
}

async function untilApplied(
  { denylist, callOptions }: DenylistAccess,
  { version, waitMs, written }: AwaitedWrite,
  interrupted: AbortSignal,
): Promise<ReceiverProgress> {
  const startedAt = performance.now()
  for (;;) {
    const receiversOrError = await denylist.receivers(callOptions).catch((error: unknown) => error)
    const tookMs = Math.round(performance.now() - startedAt)
    const isLastRead = interrupted.aborted || tookMs + POLL_MS > waitMs
    if (Array.isArray(receiversOrError)) {
      const progress = progressOf(receiversOrError, version, tookMs)
      if (isLastRead || isComplete(progress)) return progress
    } else if (isLastRead) {
      throw unconfirmedError(receiversOrError, written)
    }
    await sleep(POLL_MS)
  }
}

function unconfirmedError(error: unknown, written: Report): unknown {
  if (!(error instanceof ServiceAuthError)) return error
  const message = `the change is written, but it is unknown which receivers apply it: ${error.message}`
  return unreachableError('store_unavailable', message, written)
}

function progressOf(
  receivers: readonly DenylistReceiver[],
  version: number,
  tookMs: number,
): ReceiverProgress {
  const missing = receivers.filter((receiver) => receiver.version < version)
  return {
    applied: receivers.length - missing.length,
    total: receivers.length,
    missing: missing.map(({ name }) => name).toSorted(),
    tookMs,
  }
}

const isComplete = ({ applied, total }: ReceiverProgress): boolean => total > 0 && applied === total

function progressLines({ applied, total, missing, tookMs }: ReceiverProgress): string[] {
  if (total === 0) {
    return ['', 'The change is written, but no receiver has reported yet.']
  }
  const line = `${applied} of ${total} ${total === 1 ? 'receiver' : 'receivers'} applied the change within ${formatExactDuration(tookMs)}.`
  if (missing.length === 0) return ['', line]
  return [
    '',
    `${line} It is written; these receivers have not applied it yet or are unreachable:`,
    ...missing.map((name) => `  ${name}`),
  ]
}
