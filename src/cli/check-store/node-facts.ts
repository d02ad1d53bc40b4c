import type { Redis } from 'ioredis'
import { attemptFor, persist, within } from '../../stores/redis/connection/redis-deadline.js'

/** What one node of Redis says of itself. */
export interface NodeAnswers {
  /** The fields of `INFO`; none if the user may not run it. */
  readonly info: ReadonlyMap<string, string>
  /** Those settings that it tells us. */
  readonly settings: ReadonlyMap<string, string>
  /** How far its clock is ahead of ours at least; behind: negative. */
  readonly clockOffsetMs: number
  /** Milliseconds of some round trips. */
  readonly roundTripsMs: readonly number[]
  /** Where the connection ends, by the node itself; unknown to old releases. */
  readonly localAddress: string | undefined
}

const PINGS = 10
const SETTINGS = ['min-replicas-to-write', 'min-replicas-max-lag', 'save', 'appendfsync']

/**
 * Asks a node for all that `check-store` shows, each question within `timeoutMs`.
 *
 * @throws Error when it does not answer what every client may ask.
 */
export async function askNode(node: Redis, timeoutMs: number): Promise<NodeAnswers> {
  const ask = <T>(question: () => Promise<T>): Promise<T> => {
    const attempt = attemptFor(timeoutMs)
    return persist(attempt, () => within(question(), attempt))
  }
  /** Who may not ask gets no answer: managed services allow little. */
  const askIfAllowed = <T>(question: () => Promise<T>): Promise<T | undefined> =>
    ask(question).catch(() => undefined)

  const info = fieldsOf(
    await ask(() => node.info()).catch((error: Error) => {
      if (error.message.startsWith('NOPERM')) return ''
      throw error
    }),
  )
  const roundTripsMs: number[] = []
  for (let count = 0; count < PINGS; count++) {
    const startedAt = performance.now()
    await ask(() => node.ping())
    roundTripsMs.push(performance.now() - startedAt)
  }
  const askedAt = Date.now()
  const clockOffsetMs = offsetMs(await ask(() => node.time()), askedAt, Date.now())
  const settings = new Map<string, string>()
  for (const name of SETTINGS) {
    const reply = await askIfAllowed(() => node.config('GET', name))
    if (Array.isArray(reply) && reply.length === 2) settings.set(name, String(reply[1]))
  }
  const client = await askIfAllowed(() => node.client('INFO'))
  const [, localAddress] = / laddr=(\S+)/.exec(String(client)) ?? []
  return { info, settings, clockOffsetMs, roundTripsMs, localAddress }
}

const fieldsOf = (info: string): Map<string, string> =>
  new Map(
    info.split(/\r?\n/).flatMap((line): [string, string][] => {
      const colon = line.indexOf(':')
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
    }),
  )

/** Our clock counts whole milliseconds. */
const RESOLUTION_MS = 1

/** 0 where the round trip may explain the difference. */
function offsetMs(
  [seconds, microseconds]: readonly (number | string)[],
  askedAt: number,
  answeredAt: number,
): number {
  const theirs = Number(seconds) * 1000 + Number(microseconds) / 1000
  const latest = answeredAt + RESOLUTION_MS
  if (theirs > latest) return theirs - latest
  return theirs < askedAt ? theirs - askedAt : 0
}
