import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import { type RedisDenylist, redisDenylist } from '../../stores/redis/denylist/redis-denylist.js'
import type { CommandContext } from '../frame/command.js'
import { type Report, unreachableError, usageError } from '../frame/command-failure.js'
import { withOptionNames } from '../frame/option-names.js'
import { withRedis } from '../redis/redis-client.js'

/** A denylist, and for how long it is asked. */
export interface DenylistAccess {
  readonly denylist: RedisDenylist
  readonly asking: { readonly timeoutMs: number }
}

/**
 * Does work on the denylist, and then closes it.
 *
 * @throws CommandFailure (2) for what the denylist does not take, (3) when it is out of reach.
 */
export const withDenylist = <T>(
  context: Pick<CommandContext, 'arguments' | 'env'>,
  work: (access: DenylistAccess) => Promise<T>,
): Promise<T> =>
  withRedis(context, async ({ client, prefix, timeoutMs }) => {
    const denylist = refusing(() => redisDenylist(client, { prefix }))
    try {
      return await work({ denylist, asking: { timeoutMs } })
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

/** What a call of the denylist has failed with, as the end of a command. */
function failureOf(error: unknown, report?: Report): unknown {
  if (error instanceof ServiceAuthError) {
    return unreachableError('store_unavailable', error.message, report)
  }
  // The messages of the denylist hold no value.
  return error instanceof TypeError && /^(redisD|d)enylist /.test(error.message)
    ? usageError('usage', withOptionNames(error.message, OPTION_NAMES))
    : error
}

/** Rejects as `failureOf` says. */
export async function answered<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw failureOf(error)
  }
}
