import type { DedicatedClient } from '../clients/redis-client.js'
import { errorText, isReplyError } from './redis-call.js'

const TLS_ERROR = /before secure TLS connection|wrong version number|packet length too long|EPROTO/

/** Returns the message for a client without a usable connection. */
export function connectionErrorText(client: DedicatedClient, error: Error | undefined): string {
  if (isReplyError(error)) {
    const isDatabase = /^ERR .*\b(DB|database)\b/i.test(error.message)
    const where = isDatabase ? ` database ${client.database}` : ' the login'
    return `Redis refuses${where}: ${errorText(error)}`
  }
  const text = error === undefined ? '' : `: ${errorText(error)}`
  // Redis waits for the end of a line, so a TLS handshake with a port without TLS gets no reply.
  const isWithoutTls =
    (error !== undefined && TLS_ERROR.test(error.message)) || client.isTlsUnanswered(error)
  const hint = isWithoutTls ? ' (TLS got no answer: is this a port without TLS?)' : ''
  return `Redis is unreachable${text}${hint}`
}
