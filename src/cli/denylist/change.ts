import { userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import type { DenylistReceiver } from '../../stores/redis/denylist/operations.js'
import { type RedisDenylist, redisDenylist } from '../../stores/redis/denylist/redis-denylist.js'
import type { OptionSpecs } from '../frame/arguments.js'
import { formatExactDuration, parseDuration } from '../frame/arguments.js'
import type { CommandContext, CommandResult } from '../frame/command.js'
import { untilInterrupted } from '../frame/command.js'
import { type Report, unreachableError, usageError } from '../frame/command-failure.js'
import { ISSUER_OPTION, POLICY_OPTION } from '../input/policy-file.js'
import { REDIS_OPTIONS, withRedis } from '../redis/redis-client.js'

/** Options that `deny` and `allow` share. */
export const CHANGE_OPTIONS: OptionSpecs = {
  ...ISSUER_OPTION,
  ...POLICY_OPTION,
  '--reason TEXT': 'the reason, as the denylist shows it',
  '--by NAME': 'the author (default: the current user)',
  '--wait TIME': 'how long to wait for the receivers (default: 5s)',
  ...REDIS_OPTIONS,
}

export const readAuthor = ({ arguments: args, env }: CommandContext): string =>
  args.shortText('by') ?? userName(env)

function userName(env: CommandContext['env']): string {
  try {
    return userInfo().username || 'unknown'
  } catch {
    // The user of a container may have no name.
    return env['USER'] || 'unknown'
  }
}

/** A denylist, and the time limit of its calls. */
interface DenylistAccess {
  readonly denylist: RedisDenylist
  readonly callOptions: { readonly timeoutMs: number }
}

/**
 * Runs `work` on the denylist, then closes it.
 *
 * @throws CommandFailure (2) for input that the denylist rejects, (3) if it cannot be reached.
 */
export const withDenylist = <T>(
  context: CommandContext,
  work: (access: DenylistAccess) => Promise<T>,
): Promise<T> =>
  withRedis(context, async ({ client, prefix, timeoutMs }) => {
    let denylist: RedisDenylist | undefined
    try {
      denylist = redisDenylist(client, { prefix })
      return await work({ denylist, callOptions: { timeoutMs } })
    } catch (error) {
      throw toCommandFailure(error)
    } finally {
      denylist?.close()
    }
  })

function toCommandFailure(error: unknown): unknown {
  if (error instanceof ServiceAuthError) return unreachableError('store_unavailable', error.message)
  // Such a message of the denylist may be shown, because it contains no value.
  const [, fault] =
    /^denylist \w+: (.*)/s.exec(error instanceof TypeError ? error.message : '') ?? []
  return fault === undefined ? error : usageError(fault)
}

/** What a change has written, and the version that has it. */
interface Written extends Report {
  readonly version: number
  /** Given if it is a fault whatever the receivers apply. */
  readonly exitCode?: 1 | undefined
}

/**
 * Changes the denylist, then waits until all receivers apply the change, at most for `--wait`.
 *
 * @throws CommandFailure, with the report on the change if only the receivers cannot be queried.
 */
export function changeList(
  context: CommandContext,
  write: (access: DenylistAccess) => Promise<Written>,
): Promise<CommandResult> {
  const wait = context.arguments.text('wait') ?? '5s'
  const waitMs = parseDuration('--wait', wait, { minMs: 0, maxMs: 600_000 })
  return withDenylist(context, async (access) => {
    const { version, exitCode, ...written } = await write(access)
    const json = { ...written.json, version }
    try {
      const receivers = await untilApplied(access, version, waitMs)
      return {
        exitCode: exitCode ?? (isApplied(receivers) ? 0 : 1),
        lines: [...written.lines, '', ...progressLines(receivers)],
        json: { ...json, receivers },
      }
    } catch (error) {
      if (!(error instanceof ServiceAuthError)) throw error
      const message = `the change is written, but it is unknown which receivers apply it: ${error.message}`
      throw unreachableError('store_unavailable', message, { lines: written.lines, json })
    }
  })
}

/** How many receivers apply a version of the list. */
interface ReceiverProgress {
  readonly applied: number
  readonly of: number
  /** The names of the others. */
  readonly missing: readonly string[]
  /**
   * Milliseconds from the reply to the write until the last read of the receivers' reports. A receiver
   * reports a version only after it has applied it, so this is an upper bound.
   */
  readonly tookMs: number
}

const POLL_MS = 100

/**
 * It also waits if there is no receiver: after Redis has lost its data, a running receiver reports itself
 * again within seconds. Ctrl-C or SIGTERM ends only the wait.
 *
 * @throws ServiceAuthError if the receivers cannot be queried at the end.
 */
function untilApplied(
  { denylist, callOptions }: DenylistAccess,
  version: number,
  waitMs: number,
): Promise<ReceiverProgress> {
  return untilInterrupted(async (interrupted) => {
    const startedAt = performance.now()
    for (;;) {
      const receiversOrError = await denylist.receivers(callOptions).catch((error: Error) => error)
      const tookMs = Math.round(performance.now() - startedAt)
      const isLastRead = interrupted.aborted || tookMs + POLL_MS > waitMs
      if (!(receiversOrError instanceof Error)) {
        const progress = progressOf(receiversOrError, version, tookMs)
        if (isLastRead || isApplied(progress)) return progress
      } else if (isLastRead) {
        throw receiversOrError
      }
      await sleep(POLL_MS)
    }
  })
}

function progressOf(
  receivers: readonly DenylistReceiver[],
  version: number,
  tookMs: number,
): ReceiverProgress {
  const missing = receivers.filter((receiver) => receiver.version < version)
  return {
    applied: receivers.length - missing.length,
    of: receivers.length,
    missing: missing.map(({ name }) => name).toSorted(),
    tookMs,
  }
}

const isApplied = ({ applied, of }: ReceiverProgress): boolean => of > 0 && applied === of

function progressLines({ applied, of, missing, tookMs }: ReceiverProgress): string[] {
  if (of === 0) return ['The change is written, but no receiver has reported yet.']
  const receivers = `${of} ${of === 1 ? 'receiver' : 'receivers'}`
  const line = `${applied} of ${receivers} applied the change within ${formatExactDuration(tookMs)}.`
  if (missing.length === 0) return [line]
  return [
    `${line} It is written; these receivers have not applied it yet or are unreachable:`,
    ...missing.map((name) => `  ${name}`),
  ]
}
