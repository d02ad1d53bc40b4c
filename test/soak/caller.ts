import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Row } from './table.js'

export interface Caller {
  readonly counts: Record<Outcome | 'attempts' | 'unavailable' | 'in progress' | 'cut', number>
  /** By effect, the first answer that names it. */
  readonly answers: ReadonlyMap<string, Row>
  /** What must not happen. */
  readonly violations: string[]
  /** Writes with one key, again and again until the outcome is known or known to be unknown. */
  write(key: string): Promise<void>
  /** Closes the connections; the next write opens new ones. */
  disconnect(): void
}

interface CallerOptions {
  readonly targets: readonly { readonly host: string; readonly port: number }[]
  token(): string
  /** No more retries after this moment of `performance.now`. */
  readonly giveUpAt: number
}

type Outcome = 'created' | 'replayed' | 'unknown'

const REQUEST_TIMEOUT_MS = 4000
const RETRY_DELAY_MS = 100
/** A token is used for a minute, and many requests. */
const TOKEN_MS = 60_000

export function createCaller({ targets, token, giveUpAt }: CallerOptions): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const counts = {
    created: 0,
    replayed: 0,
    unknown: 0,
    attempts: 0,
    unavailable: 0,
    'in progress': 0,
    cut: 0,
  }
  const answers = new Map<string, Row>()
  const violations: string[] = []
  let current = { token: '', until: 0 }

  async function send(key: string) {
    const now = performance.now()
    if (now > current.until) current = { token: token(), until: now + TOKEN_MS }
    const content = JSON.stringify({ key, item: itemOf(key) })
    const outgoing = request({
      agent,
      ...targets[counts.attempts % targets.length],
      method: 'POST',
      path: '/orders',
      timeout: REQUEST_TIMEOUT_MS,
      headers: {
        authorization: `Bearer ${current.token}`,
        'idempotency-key': key,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(content),
      },
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
    outgoing.end(content)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    const { statusCode: status, headers } = response
    const body = Buffer.concat(chunks).toString()
    return { status, isReplayed: headers['idempotent-replayed'] === 'true', body }
  }

  /** `undefined` when it has to be tried again. */
  function judge(
    key: string,
    { status, isReplayed, body }: Awaited<ReturnType<typeof send>>,
  ): Outcome | undefined {
    if (status === 201) {
      const { effect, ...order } = JSON.parse(body)
      if (order.key !== key || order.item !== itemOf(key)) violations.push(`${key} got ${body}`)
      if (!answers.has(effect)) answers.set(effect, { key, effect, at: Date.now() })
      return isReplayed ? 'replayed' : 'created'
    }
    if (status === 503) counts.unavailable += 1
    else if (status === 409 && body.includes('outcome-unknown')) return 'unknown'
    else if (status === 409 && body.includes('request-in-progress')) counts['in progress'] += 1
    else violations.push(`${key} got ${status} ${body}`)
    return undefined
  }

  return {
    counts,
    answers,
    violations,
    async write(key) {
      while (performance.now() < giveUpAt) {
        counts.attempts += 1
        const reply = await send(key).catch(() => undefined)
        if (reply === undefined) counts.cut += 1
        const outcome = reply && judge(key, reply)
        if (outcome !== undefined) {
          counts[outcome] += 1
          return
        }
        await delay(RETRY_DELAY_MS * (0.5 + Math.random()))
      }
      violations.push(`${key} found no end`)
    },
    disconnect: () => agent.destroy(),
  }
}

const itemOf = (key: string): string => `item of ${key}`
