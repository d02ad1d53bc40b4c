import { setImmediate as endOfTick } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Cluster, Redis } from 'ioredis'
import type { Client } from './dedicated-client.js'
import { faultText, isServersAnswer } from './redis-deadline.js'

/**
 * Checks that the name of a function got a client of ioredis.
 *
 * @throws TypeError when it is none, or its database is not a number: ioredis would use database 0.
 */
export function requireClient(caller: string, redis: Redis | Cluster): void {
  if (typeof redis?.duplicate !== 'function' || typeof redis.isCluster !== 'boolean') {
    throw new TypeError(`${caller}: redis must be a Redis or Cluster client of ioredis`)
  }
  const { db = 0 } = redis.isCluster ? {} : (redis as Redis).options
  if (!/^\d+$/.test(String(db))) {
    throw new TypeError(`${caller}: the option db of redis must be the number of a database`)
  }
}

const databaseOf = (client: Client): number =>
  client.isCluster ? 0 : Number((client as Redis).options.db ?? 0)

/**
 * ioredis reports `ready` although Redis may still refuse the login or the database, and commands sent
 * by then would run as the default user or in database 0. Returns `undefined` if neither applies.
 *
 * @throws Error with the reply of Redis, or that the connection was closed.
 */
export function confirmHandshake(client: Client): Promise<unknown> | undefined {
  if (client.isCluster) return undefined
  const redis = client as Redis
  if (databaseOf(redis) === 0 && !redis.options.password) return undefined
  return confirm(redis)
}

async function confirm(redis: Redis): Promise<void> {
  const db = databaseOf(redis)
  let loginFault: Error | undefined
  const note = (error: Error): void => {
    if (error.message.startsWith('WRONGPASS')) loginFault = error
  }
  redis.on('error', note)
  try {
    await (db === 0 ? redis.ping() : redis.select(db))
    // ioredis 5 emits the error of a login after it has settled what Redis replied next.
    await endOfTick()
  } catch (error) {
    // A user without PING, and a server that is loading, have passed the login.
    const isRefused = db !== 0 || !isServersAnswer(error) || NO_LOGIN.test(error.message)
    if (isRefused) throw loginFault ?? error
  } finally {
    redis.off('error', note)
  }
  if (loginFault !== undefined) throw loginFault
}

const NO_LOGIN = /^(WRONGPASS|NOAUTH)\b/

const TLS_FAULT = /before secure TLS connection|wrong version number|packet length too long|EPROTO/

/** Why the client has no usable connection; empty if nothing is known. */
export function connectionFault(client: Client, fault: Error | undefined): string {
  if (isServersAnswer(fault)) {
    const db = databaseOf(client)
    const where = /^ERR .*\b(DB|database)\b/i.test(fault.message) ? ` database ${db}` : ' the login'
    return `Redis refuses${where}: ${faultText(fault)}`
  }
  const text = fault === undefined ? '' : `: ${faultText(fault)}`
  const hint = isWithoutTls(client, fault)
    ? ' (TLS got no answer: is this a port without TLS?)'
    : ''
  return `Redis is out of reach${text}${hint}`
}

/** Redis waits for the end of a line, so that a TLS handshake with a plain port gets no reply. */
function isWithoutTls(client: Client, fault: Error | undefined): boolean {
  if (fault !== undefined && TLS_FAULT.test(fault.message)) return true
  if (client.isCluster) return false
  const { options, stream } = client as Redis
  if (options.tls && fault?.message === 'connect ETIMEDOUT') return true
  return stream instanceof TLSSocket && !stream.connecting && stream.getCipher() === undefined
}
