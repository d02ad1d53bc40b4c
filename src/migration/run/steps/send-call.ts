import { CoreError } from '../../core/core-error.js'
import type { MigrationContext } from '../migration-context.js'
import type { SentCall } from '../state/journal-entry.js'
import { resolveLostReply } from './resolve-lost-reply.js'

/**
 * Journals a call and sends it. Returns `undefined` if there was no reply and `resolveLostReply` has journaled
 * the result of the call.
 *
 * @throws CoreError if the core refused the call, or if too many calls got no reply.
 */
export async function sendCall<Reply>(
  ctx: MigrationContext,
  call: SentCall,
  send: (signal: AbortSignal) => Promise<Reply>,
): Promise<Reply | undefined> {
  await ctx.journaled.write({ type: 'sent', call })
  try {
    return await withGracePeriod(ctx.signal, send)
  } catch (error) {
    if (!(error instanceof CoreError)) throw error
    if (error.outcome === 'refused') {
      await ctx.journaled.write({
        type: 'settled',
        result: { outcome: 'refused', code: error.code },
      })
      throw error
    }
    await resolveLostReply(ctx, { abandonedAt: ctx.timing.elapsedMs(), error })
    return undefined
  }
}

/** How long an aborted run waits for a write that is in progress, in milliseconds. */
const GRACE_PERIOD_MS = 5000

/**
 * Performs a write with a signal that aborts `GRACE_PERIOD_MS` after `signal`. If the reply arrives meanwhile,
 * the next run need not find out whether the call took effect.
 */
export async function withGracePeriod<Result>(
  signal: AbortSignal,
  write: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const startTimer = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), GRACE_PERIOD_MS)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', startTimer, { once: true })
  try {
    return await write(late.signal)
  } finally {
    signal.removeEventListener('abort', startTimer)
    clearTimeout(timer)
  }
}
