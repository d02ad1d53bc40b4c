import { setImmediate as endOfTick } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { isReplyError } from '../connection/redis-call.js'
import type { Ioredis } from './ioredis-duplicates.js'

export const databaseOf = (client: Ioredis): number =>
  client.isCluster ? 0 : Number((client as Redis).options.db ?? 0)

/**
 * Resolves once Redis has accepted the login and the database. ioredis reports `ready` before that, and
 * commands sent meanwhile would run as the default user or in database 0. Returns `undefined` if the
 * client needs neither.
 *
 * @throws Error with the reply of Redis, or because the connection was closed.
 */
export function confirmHandshake(client: Ioredis): Promise<unknown> | undefined {
  if (client.isCluster) return undefined
  const redis = client as Redis
  if (databaseOf(redis) === 0 && !redis.options.password) return undefined
  return confirm(redis)
}

async function confirm(redis: Redis): Promise<void> {
  const db = databaseOf(redis)
  let loginError: Error | undefined
  const recordLoginError = (error: Error): void => {
    if (error.message.startsWith('WRONGPASS')) loginError = error
  }
  redis.on('error', recordLoginError)
  try {
    await (db === 0 ? redis.ping() : redis.select(db))
    // ioredis 5 emits the error of a login after it has settled the next command.
    await endOfTick()
  } catch (error) {
    // Errors for a user without PING, or from a server that is loading, come after the login.
    const isRefused = db !== 0 || !isReplyError(error) || NO_LOGIN.test(error.message)
    if (isRefused) throw loginError ?? error
  } finally {
    redis.off('error', recordLoginError)
  }
  if (loginError !== undefined) throw loginError
}

const NO_LOGIN = /^(WRONGPASS|NOAUTH)\b/
