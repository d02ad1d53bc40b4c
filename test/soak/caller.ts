import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'

/** What a caller learned of one of its writes. */
export type Outcome = 'created' | 'replayed' | 'unknown'

export interface Caller {
  readonly counts: Record<Outcome | 'attempts' | 'unavailable' | 'inProgress' | 'cut', number>
  /** What must not happen. */
  readonly violations: string[]
  /** Writes with one key, again and again until the outcome is known or known to be unknown. */
  write(order: Order): Promise<Outcome>
  close(): void
}

export interface Order {
  readonly key: string
  readonly item: string
  readonly path: string
}

interface Answer {
  readonly status: number
  readonly isReplayed: boolean
  readonly body: string
}

export interface CallerOptions {
  readonly ports: readonly number[]
  readonly tokens: readonly string[]
  /** No more retries after this moment of `performance.now`. */
  readonly giveUpAt: number
}

const REQUEST_TIMEOUT_MS = 5000
const RETRY_DELAY_MS = 100

export function createCaller({ ports, tokens, giveUpAt }: CallerOptions): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const counts = {
    created: 0,
    replayed: 0,
    unknown: 0,
    attempts: 0,
    unavailable: 0,
    inProgress: 0,
    cut: 0,
  }
  const violations: string[] = []

  async function send({ key, item, path }: Order): Promise<Answer> {
    const body = JSON.stringify({ item })
    const outgoing = request({
      agent,
      port: ports[counts.attempts % ports.length],
      host: '127.0.0.1',
      method: 'POST',
      path,
      timeout: REQUEST_TIMEOUT_MS,
      headers: {
        authorization: `Bearer ${tokens[counts.attempts % tokens.length]}`,
        'idempotency-key': key,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
    outgoing.end(body)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    const isReplayed = response.headers['idempotent-replayed'] === 'true'
    return { status: response.statusCode ?? 0, isReplayed, body: Buffer.concat(chunks).toString() }
  }

  /** `undefined` when it has to be tried again. */
  function judge({ status, isReplayed, body }: Answer, { key, item }: Order): Outcome | undefined {
    if (status === 201) {
      if (body !== JSON.stringify({ key, item })) violations.push(`${key} got ${body}`)
      return isReplayed ? 'replayed' : 'created'
    }
    if (status === 503) counts.unavailable += 1
    else if (status === 409 && body.includes('outcome-unknown')) return 'unknown'
    else if (status === 409 && body.includes('request-in-progress')) counts.inProgress += 1
    else violations.push(`${key} got ${status} ${body}`)
    return undefined
  }

  return {
    counts,
    violations,
    async write(order) {
      while (performance.now() < giveUpAt) {
        counts.attempts += 1
        const answer = await send(order).catch(() => undefined)
        if (answer === undefined) counts.cut += 1
        const outcome = answer && judge(answer, order)
        if (outcome !== undefined) {
          counts[outcome] += 1
          return outcome
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS * (0.5 + Math.random())))
      }
      violations.push(`${order.key} found no end`)
      return 'unknown'
    },
    close: () => agent.destroy(),
  }
}
