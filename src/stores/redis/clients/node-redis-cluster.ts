import { setTimeout as sleep } from 'node:timers/promises'
import { isReplyError, startRedisCall, untilDeadline } from '../connection/redis-call.js'
import { slotOf } from './hash-slot.js'
import { openServerClient } from './node-redis-connection.js'
import {
  type ClusterSource,
  discoverTopology,
  firstOf,
  type Topology,
  topologyOf,
  withHost,
} from './node-redis-topology.js'
import { notConnectedError } from './reconnecting.js'
import type {
  ClientListener,
  ClusterClient,
  RedisNode,
  ScriptCommand,
  ServerClient,
} from './redis-client.js'
import { detectStalls } from './stall-detector.js'
import { MAX_REDIRECTIONS, RETRY_DELAY_IN_CLUSTER_MS } from './time-limits.js'

interface Node {
  readonly client: ServerClient
  /** Resolves once the client has connected; rejects if it cannot. */
  readonly connected: Promise<void>
  watch<T>(reply: Promise<T>): Promise<T>
  close(): void
}

/**
 * Opens connections to the masters of a cluster when they are first needed. The cluster client of
 * node-redis is not used: it keeps sending to a master that has failed, and waits for silent nodes.
 */
export function openClusterConnection(
  source: ClusterSource,
  listener: ClientListener,
): ClusterClient {
  const nodes = new Map<string, Node>()
  const goneListeners: ((address: string) => void)[] = []
  let topology: Topology | undefined
  let refreshing: Promise<void> | undefined
  let lastError: Error | undefined
  let isClosed = false

  function close(): void {
    isClosed = true
    topology = undefined
    for (const node of nodes.values()) node.close()
    nodes.clear()
  }

  function nodeAt(address: string): Node {
    const existing = nodes.get(address)
    if (existing !== undefined) return existing
    if (isClosed) throw notConnectedError()
    const drop = (): void => {
      if (nodes.get(address) !== node) return
      nodes.delete(address)
      node.close()
      void refresh().catch(() => {})
    }
    const stallDetector = detectStalls(source.stallTimeoutMs, drop)
    const client = openServerClient(source.node(address), { lost: drop })
    const node: Node = {
      client,
      connected: stallDetector.watch(client.connect()),
      watch: stallDetector.watch,
      close() {
        stallDetector.close()
        client.close()
      },
    }
    nodes.set(address, node)
    node.connected.catch(() => {})
    return node
  }

  /** Asks the connected nodes for the topology, then others. If none answers, the client is lost. */
  function refresh(): Promise<void> {
    refreshing ??= askConnected()
      .catch(() => discoverTopology(source, false))
      .then(apply)
      .catch((error: Error) => {
        if (isClosed) return
        lastError = error
        close()
        listener.lost?.()
        throw error
      })
      .finally(() => (refreshing = undefined))
    return refreshing
  }

  function askConnected(): Promise<Topology> {
    const connected = [...nodes.values()].filter(({ client }) => client.isReady())
    return firstOf(
      connected.map(async ({ client, watch }) =>
        untilDeadline(watch(topologyOf(client, false)), startRedisCall(source.connectTimeoutMs)),
      ),
    )
  }

  function apply(next: Topology): void {
    if (isClosed) return
    const before = topology?.masters ?? new Set()
    topology = next
    source.known.clear()
    for (const address of next.all) source.known.add(address)
    for (const [address, node] of nodes) {
      if (next.masters.has(address)) continue
      nodes.delete(address)
      node.close()
    }
    for (const address of before) {
      if (next.masters.has(address)) continue
      for (const onGone of goneListeners) onGone(address)
    }
  }

  /** Rejects after a delay, so that the call is not repeated too often. */
  async function connectedNode(address: string | undefined): Promise<Node> {
    if (address === undefined) {
      void refresh().catch(() => {})
      await sleep(RETRY_DELAY_IN_CLUSTER_MS, undefined, { ref: false })
      throw new Error('No node is known to have the slot of the key')
    }
    const node = nodeAt(address)
    if (node.client.isReady()) return node
    try {
      await node.connected
      return node
    } catch (error) {
      await sleep(RETRY_DELAY_IN_CLUSTER_MS, undefined, { ref: false })
      throw error
    }
  }

  async function runScript(command: ScriptCommand): Promise<unknown> {
    const slot = slotOf(source.keyPrefix + (command.keys[0] ?? ''))
    /** Where MOVED or ASK has sent the command, instead of the known master of its slot. */
    let redirect: { readonly address: string; readonly isAsking: boolean } | undefined
    for (let tries = 0; ; tries += 1) {
      if (topology === undefined) throw notConnectedError()
      const node = await connectedNode(redirect?.address ?? topology.slots[slot])
      try {
        if (redirect?.isAsking) node.client.command('ASKING').catch(() => {})
        return await node.watch(node.client.runScript(command))
      } catch (error) {
        if (!isReplyError(error) || tries >= MAX_REDIRECTIONS) throw error
        const [kind = '', , address = ''] = error.message.split(' ')
        if (kind === 'MOVED' || kind === 'ASK') {
          redirect = { address: withHost(address, node.client.address), isAsking: kind === 'ASK' }
          if (kind === 'MOVED') void refresh().catch(() => {})
        } else if (kind === 'CLUSTERDOWN' || kind === 'TRYAGAIN') {
          redirect = undefined
          await sleep(RETRY_DELAY_IN_CLUSTER_MS, undefined, { ref: false })
          if (kind === 'CLUSTERDOWN') await refresh()
        } else {
          throw error
        }
      }
    }
  }

  const masterNode = (address: string): RedisNode => ({
    address,
    isBehindSentinel: false,
    async command(...words) {
      const node = await connectedNode(address)
      return node.watch(node.client.command(...words))
    },
  })

  return {
    isCluster: true,
    database: 0,
    isReady: () => topology !== undefined,
    lastError: () => lastError,
    async connect() {
      try {
        apply(await discoverTopology(source, true))
      } catch (error) {
        lastError = error as Error
        close()
        listener.lost?.()
        throw error
      }
      if (isClosed) throw notConnectedError()
      listener.ready?.()
    },
    close,
    runScript,
    async masters() {
      await refresh()
      return [...(topology?.masters ?? [])].map(masterNode)
    },
    isTlsUnanswered: () => false,
    addressOf: (key) => topology?.slots[slotOf(source.keyPrefix + key)],
    masterAt: (address) => (topology?.masters.has(address) ? source.openNode(address) : undefined),
    refresh: () => void refresh().catch(() => {}),
    onNodeGone(onGone) {
      goneListeners.push(onGone)
    },
  }
}
