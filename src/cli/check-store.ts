import { ServiceAuthError } from '../decision/fault.js'
import { redisStore } from '../stores/redis/redis-store.js'
import type { Command, CommandContext, CommandResult } from './command.js'
import { outOfReach } from './failure.js'
import { REDIS_OPTIONS, withRedis } from './redis-client.js'

export const checkStore: Command = {
  name: 'check-store',
  summary: 'Looks whether Redis can be trusted with what the package keeps there',
  usage: ['[--redis FILE] [--prefix TEXT] [--timeout TIME]'],
  options: REDIS_OPTIONS,
  oneMeans: 'a node is unfit',
  examples: [
    'REDIS_URL=... service-auth check-store',
    'service-auth check-store --redis redis.json --json',
  ],
  run,
}

function run(context: CommandContext): Promise<CommandResult> {
  return withRedis(context, async ({ client, prefix, timeoutMs }) => {
    const store = redisStore(client, { prefix, timeoutMs })
    try {
      await store.check()
      return { exitCode: 0, lines: ['fit'], json: {} }
    } catch (error) {
      if (!(error instanceof ServiceAuthError)) throw error
      if (error.code === 'unavailable') throw outOfReach('store_unavailable', error.message)
      return { exitCode: 1, lines: [error.message], json: {} }
    } finally {
      store.close()
    }
  })
}
