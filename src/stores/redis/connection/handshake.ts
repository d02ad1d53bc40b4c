import { setImmediate as endOfTick } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Cluster, Redis } from 'ioredis'
import type { Client } from './dedicated-client.js'
import { errorText, isReplyError } from './redis-call.js'

/**
 * Checks that the function `caller` got a client of ioredis.
 *
 * @throws TypeError if it is not one, or if its `db` is not a number: ioredis would use database 0.
 */
export function requireClient(caller: string, redis: Redis | Cluster): void {
  if (typeof redis?.duplicate !== 'function' || typeof redis.isCluster !== 'boolean') {
    throw new TypeError(
      `${caller}: redis must be a Redis or Cluster client of ioredis, such as new Redis(url)`,
    )
  }
  const { db = 0 } = redis.isCluster ? {} : (redis as Redis).options
  if (!/^\d+$/.test(String(db))) {
    throw new TypeError(`${caller}: the option db of redis must be the number of a database`)
  }
}

const databaseOf = (client: Client): number =>
  client.isCluster ? 0 : Number((client as Redis).options.db ?? 0)

/**
 * Resolves once Redis has accepted the login and the database. ioredis reports `ready` before that, and
 * commands sent meanwhile would run as the default user or in database 0. Returns `undefined` if the
 * client needs neither.
 *
 * @throws Error with the reply of Redis, or because the connection was closed.
 */
export function confirmHandshake(client: Client): Promise<unknown> | undefined {
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

const TLS_ERROR = /before secure TLS connection|wrong version number|packet length too long|EPROTO/

/** Returns the message for a client without a usable connection. */
export function connectionErrorText(client: Client, error: Error | undefined): string {
  if (isReplyError(error)) {
    const db = databaseOf(client)
    const where = /^ERR .*\b(DB|database)\b/i.test(error.message) ? ` database ${db}` : ' the login'
    return `Redis refuses${where}: ${errorText(error)}`
  }
  const text = error === undefined ? '' : `: ${errorText(error)}`
  const hint = isWithoutTls(client, error)
    ? ' (TLS got no answer: is this a port without TLS?)'
    : ''
  return `Redis is unreachable${text}${hint}`
}

/** Redis waits for the end of a line, so a TLS handshake with a port without TLS gets no reply. */
function isWithoutTls(client: Client, error: Error | undefined): boolean {
  if (error !== undefined && TLS_ERROR.test(error.message)) return true
  if (client.isCluster) return false
  const { options, stream } = client as Redis
  if (options.tls && error?.message === 'connect ETIMEDOUT') return true
  return stream instanceof TLSSocket && !stream.connecting && stream.getCipher() === undefined
}
