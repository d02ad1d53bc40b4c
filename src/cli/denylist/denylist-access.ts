import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import { type RedisDenylist, redisDenylist } from '../../stores/redis/denylist/redis-denylist.js'
import type { CommandContext } from '../frame/command.js'
import { type Report, unreachableError, usageError } from '../frame/command-failure.js'
import { withOptionNames } from '../frame/option-names.js'
import { withRedis } from '../redis/redis-client.js'

/** A denylist, and the time limit of its calls. */
export interface DenylistAccess {
  readonly denylist: RedisDenylist
  readonly callOptions: { readonly timeoutMs: number }
}

/**
 * Runs `work` on the denylist, then closes it.
 *
 * @throws CommandFailure (2) for input that the denylist rejects, (3) if it cannot be reached.
 */
export const withDenylist = <T>(
  context: Pick<CommandContext, 'arguments' | 'env'>,
  work: (access: DenylistAccess) => Promise<T>,
): Promise<T> =>
  withRedis(context, async ({ client, prefix, timeoutMs }) => {
    const denylist = refusing(() => redisDenylist(client, { prefix }))
    try {
      return await work({ denylist, callOptions: { timeoutMs } })
    } finally {
      denylist.close()
    }
  })

function refusing<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw failureOf(error)
  }
}

const OPTION_NAMES = new Map([['prefix', '--prefix']])

/** Converts an error of a denylist call to a `CommandFailure`; returns other errors unchanged. */
function failureOf(error: unknown, report?: Report): unknown {
  if (error instanceof ServiceAuthError) {
    return unreachableError('store_unavailable', error.message, report)
  }
  // The messages of the denylist contain no values.
  return error instanceof TypeError && /^(redisD|d)enylist /.test(error.message)
    ? usageError('usage', withOptionNames(error.message, OPTION_NAMES))
    : error
}

/** Rejects with the error that `failureOf` returns. */
export async function orFailure<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw failureOf(error)
  }
}
