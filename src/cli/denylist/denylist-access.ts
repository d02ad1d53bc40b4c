import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import { type RedisDenylist, redisDenylist } from '../../stores/redis/denylist/redis-denylist.js'
import type { CommandContext } from '../frame/command.js'
import { unreachableError, usageError, withOptionNames } from '../frame/command-failure.js'
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

const OPTION_NAMES = new Map([['prefix', '--prefix']])

function toCommandFailure(error: unknown): unknown {
  if (error instanceof ServiceAuthError) return unreachableError('store_unavailable', error.message)
  // Such a message of the denylist may be shown, because it contains no value.
  return error instanceof TypeError && /^(redisD|d)enylist /.test(error.message)
    ? usageError('usage', withOptionNames(error.message, OPTION_NAMES))
    : error
}
