import { AsyncResource } from 'node:async_hooks'
import type {
  ClientFactory,
  ClusterClient,
  OpenClient,
  ServerClient,
} from '../clients/redis-client.js'
import {
  type CallState,
  isReplyError,
  NotConfirmed,
  retryUntilDeadline,
  startRedisCall,
} from '../connection/redis-call.js'
import type { Connection } from '../connection/redis-connection.js'
import {
  type GroupCommit,
  openGroupCommit,
  type Replicas,
  type ReservingCall,
} from './group-commit.js'

interface ReplicatedOptions {
  readonly timeoutMs: number
  readonly replicas: Replicas
}

/** Runs reservations that count only if enough replicas have acknowledged them. */
export function openReplicated(
  clients: ClientFactory,
  connection: Connection,
  { timeoutMs, replicas }: ReplicatedOptions,
) {
  const longestReplyMs = timeoutMs + replicas.timeoutMs
  // In a cluster, the first request that needs a connection opens it, and the connection outlives that request.
  const open = AsyncResource.bind(
    (openClient: OpenClient<ServerClient>): GroupCommit =>
      openGroupCommit(openClient, { replicas, longestReplyMs }),
  )
  const { cluster } = connection
  const groupCommits =
    cluster === undefined
      ? open(clients.open as OpenClient<ServerClient>)
      : openClusterCommits(cluster, connection, open)

  return {
    /** @throws NotConfirmed if they have not in time, or an Error with the error reply of Redis. */
    run(call: ReservingCall, state: CallState = startRedisCall(longestReplyMs)): Promise<unknown> {
      return connection.watch(retryUntilDeadline(state, () => groupCommits.commit(call, state)))
    },
    close: groupCommits.close,
  }
}

/** Opens a connection to each master that has a key, by address. */
function openClusterCommits(
  cluster: ClusterClient,
  { link }: Connection,
  open: (openClient: OpenClient<ServerClient>) => GroupCommit,
): GroupCommit {
  const groupCommits = new Map<string, GroupCommit>()
  const refreshSlots = AsyncResource.bind(() => cluster.refresh())

  cluster.onNodeGone((address) => {
    groupCommits.get(address)?.close()
    groupCommits.delete(address)
  })

  function groupCommitFor(key: string): GroupCommit {
    const address = cluster.addressOf(key)
    const existing = address === undefined ? undefined : groupCommits.get(address)
    if (existing !== undefined) return existing
    const openMaster = address === undefined ? undefined : cluster.masterAt(address)
    if (openMaster === undefined || address === undefined) throw new Error('the master has gone')
    const groupCommit = open(openMaster)
    groupCommits.set(address, groupCommit)
    return groupCommit
  }

  async function commit(call: ReservingCall, state: CallState): Promise<unknown> {
    await link.untilReady(state)
    try {
      return await groupCommitFor(call.key).commit(call, state)
    } catch (error) {
      // The key may have moved to another node, also in a failover.
      const isLateOrAlone = error instanceof NotConfirmed && error.mayHaveRun
      if (!isLateOrAlone) refreshSlots()
      if (isReplyError(error) && /^(MOVED|ASK|READONLY) /.test(error.message)) {
        throw new Error('the key has moved')
      }
      throw error
    }
  }

  return {
    commit,
    close() {
      for (const groupCommit of groupCommits.values()) groupCommit.close()
    },
  }
}
