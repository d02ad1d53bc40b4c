import { isReplyError, startRedisCall, untilDeadline } from '../connection/redis-call.js'
import { type ConnectionSource, openServerClient } from './node-redis-connection.js'
import type { OpenClient, ServerClient } from './redis-client.js'

/** How to connect to the nodes of a cluster. */
export interface ClusterSource {
  readonly keyPrefix: string
  readonly connectTimeoutMs: number
  /** A node that sends nothing for so long, though it owes a reply, is replaced. */
  readonly stallTimeoutMs: number
  /** The addresses of the last topology. */
  readonly known: Set<string>
  /** Returns the nodes that the app has named. */
  roots(): readonly ConnectionSource[]
  node(address: string): ConnectionSource
  /** Returns what opens a client for a node. */
  openNode(address: string): OpenClient<ServerClient>
}

/** The masters of a cluster and their slots. */
export interface Topology {
  /** The master of each slot. */
  readonly slots: readonly (string | undefined)[]
  readonly masters: ReadonlySet<string>
  readonly all: readonly string[]
}

/** The number of nodes that are asked for the topology at the same time. */
const MAX_ASKED = 8

/**
 * Asks the nodes that the app has named, and those last known, on new connections, because the app may have named
 * a node with a different login.
 *
 * @throws Error if no node answers, or if `mustBeUp` and the cluster is down.
 */
export function discoverTopology(source: ClusterSource, mustBeUp: boolean): Promise<Topology> {
  const known = [...source.known].map(source.node)
  const asked = [...shuffled(source.roots()), ...shuffled(known)].slice(0, MAX_ASKED)
  return firstOf(
    asked.map(async (node) => {
      const client = openServerClient(node, {})
      const work = client.connect().then(() => topologyOf(client, mustBeUp))
      return untilDeadline(work, startRedisCall(source.connectTimeoutMs)).finally(client.close)
    }),
  )
}

/** Resolves to the first result. @throws Error if all reject: the first error reply, otherwise the last error. */
export async function firstOf<T>(work: readonly Promise<T>[]): Promise<T> {
  try {
    return await Promise.any(work)
  } catch (error) {
    const { errors } = error as AggregateError
    throw errors.find(isReplyError) ?? errors.at(-1) ?? new Error('No node of the cluster is known')
  }
}

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((value) => ({ value, rank: Math.random() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ value }) => value)

/** Adds the host of the node that sent the address, if the node has left it out. */
export function withHost(address: string, sender: string): string {
  if (!address.startsWith(':') || address.startsWith('::')) return address
  return sender.slice(0, sender.lastIndexOf(':')) + address
}

/**
 * Asks a node for the topology of its cluster.
 *
 * @throws Error if `mustBeUp`, and the node says that the cluster is down.
 */
export async function topologyOf(client: ServerClient, mustBeUp: boolean): Promise<Topology> {
  const [reply, info] = await Promise.all([
    client.command('CLUSTER', 'SLOTS'),
    // The user may lack the right to run CLUSTER INFO.
    mustBeUp ? client.command('CLUSTER', 'INFO').catch(() => '') : '',
  ])
  if (String(info).includes('cluster_state:fail')) throw new Error('The cluster is not ready')
  return parseSlots(reply, client.address)
}

type SlotRange = readonly [
  from: number,
  to: number,
  ...nodes: (readonly [host: string | null, port: number])[],
]

/** Parses the reply to `CLUSTER SLOTS`. */
function parseSlots(reply: unknown, sender: string): Topology {
  const slots: (string | undefined)[] = []
  const masters = new Set<string>()
  const all = new Set<string>()
  for (const [from, to, ...nodes] of reply as readonly SlotRange[]) {
    const addresses = nodes.map(([host, port]) =>
      withHost(`${host === '?' ? '' : (host ?? '')}:${port}`, sender),
    )
    const [master] = addresses
    if (master === undefined) continue
    masters.add(master)
    for (const address of addresses) all.add(address)
    for (let slot = from; slot <= to; slot += 1) slots[slot] = master
  }
  return { slots, masters, all: [...all] }
}
