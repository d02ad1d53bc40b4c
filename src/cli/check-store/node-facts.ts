import type { Redis } from 'ioredis'
import {
  retryUntilDeadline,
  startCall,
  untilDeadline,
} from '../../stores/redis/connection/redis-call.js'

/** The replies of one Redis node. */
export interface NodeFacts {
  /** The fields of `INFO`; empty if the user may not run it. */
  readonly info: ReadonlyMap<string, string>
  /** The settings that the node lets us read. */
  readonly settings: ReadonlyMap<string, string>
  /** How far its clock is ahead of ours, at least; negative if it is behind. */
  readonly clockOffsetMs: number
  /** The durations of the `PING` commands. */
  readonly roundTripsMs: readonly number[]
  /** The node's own address on the connection; old releases do not report it. */
  readonly localAddress: string | undefined
}

const PINGS = 10
const SETTINGS = ['min-replicas-to-write', 'min-replicas-max-lag', 'save', 'appendfsync']

/**
 * Queries a node for everything that `check-store` shows beside `INFO`, each command within `timeoutMs`.
 *
 * @throws Error if it does not answer a command that every client may run.
 */
export async function readNodeFacts(
  node: Redis,
  info: string,
  timeoutMs: number,
): Promise<NodeFacts> {
  const ask = <T>(question: () => Promise<T>): Promise<T> => {
    const attempt = startCall(timeoutMs)
    return retryUntilDeadline(attempt, () => untilDeadline(question(), attempt))
  }
  /** Resolves to `undefined` if a command fails, because managed services forbid many commands. */
  const askIfAllowed = <T>(question: () => Promise<T>): Promise<T | undefined> =>
    ask(question).catch(() => undefined)

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
  return { info: fieldsOf(info), settings, clockOffsetMs, roundTripsMs, localAddress }
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

/** Returns 0 if the round trip may explain the difference. */
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
