import { withoutDate } from '../support/network/raw-exchange.js'
import { callRaw } from '../support/receiver/order-calls.js'
import type { Stop } from './stops.js'

export interface Answer {
  /** Every byte but the `Date`. */
  readonly raw: string
  /** 0 when nothing came. */
  readonly status: number
  readonly body: string
  /** The end of the problem's type. */
  readonly problem: string | undefined
  readonly isReplayed: boolean
  readonly isWhole: boolean
  readonly retryAfter: string | undefined
  /** Moments of `performance.now`. */
  readonly askedAt: number
  readonly answeredAt: number
}

export interface Exchange {
  readonly answer: Promise<Answer>
  /** The caller hangs up. */
  abort(): void
}

export interface Post {
  readonly path: string
  readonly key: string
  readonly token: string
  readonly stopAt?: Stop | readonly Stop[]
  readonly body: unknown
}

/** One POST on a socket of its own, answered with what came until the connection was gone. */
export function post(port: number, { path, key, token, stopAt, body }: Post): Exchange {
  const askedAt = performance.now()
  const headers = {
    connection: 'close',
    authorization: `Bearer ${token}`,
    ...(stopAt !== undefined && { 'x-stop-at': [stopAt].flat().join(', ') }),
  }
  const exchange = callRaw(port, { path, key, body: JSON.stringify(body), headers })
  return {
    answer: exchange.closed.then((received) => readAnswer(received, askedAt)),
    abort: () => void exchange.socket.destroy(),
  }
}

function readAnswer(received: string, askedAt: number): Answer {
  const raw = withoutDate(received)
  const bodyAt = raw.indexOf('\r\n\r\n') + 4
  const header = (name: string): string | undefined =>
    new RegExp(`\r\n${name}: ([^\r]*)`, 'i').exec(raw.slice(0, bodyAt))?.[1]
  const sent = raw.slice(bodyAt)
  return {
    raw,
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(raw)?.[1] ?? 0),
    body: Buffer.from(sent, 'latin1').toString(),
    problem: /"type":"urn:express-service-auth:([^"]*)"/.exec(sent)?.[1],
    isReplayed: header('Idempotent-Replayed') === 'true',
    isWhole: header('Content-Length') === String(sent.length) || sent.endsWith('0\r\n\r\n'),
    retryAfter: header('Retry-After'),
    askedAt,
    answeredAt: performance.now(),
  }
}
